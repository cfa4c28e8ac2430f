"""A prompt: a function from named texts to messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from mcp_stateless.content import ContentBlock, Icon, Message, Role, as_block
from mcp_stateless.definitions.json_text import encoded
from mcp_stateless.definitions.output import Wire
from mcp_stateless.definitions.parameters import function_name, is_async
from mcp_stateless.definitions.signature import HasSignature, Signature
from mcp_stateless.definitions.tool import icons_and_meta
from mcp_stateless.errors import ArgumentError, InvalidParams, ToolError


@dataclass(frozen=True, slots=True)
class Prompt(HasSignature):
    """Made by `from_function`, once, at registration. Its arguments arrive as text and are read as their types."""

    name: str
    fn: Callable[..., Any]
    signature: Signature
    title: str | None = None
    description: str | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, object] | None = None
    is_async: bool = False
    in_thread: bool = True

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Mapping[str, object] | None = None,
        in_thread: bool = True,
    ) -> "Prompt":
        """Raises ConfigurationError if the function cannot be a prompt; the message says what to change."""
        found = function_name(fn, name, "prompt")
        signature = Signature.of(fn, name=f"Prompt {found!r}")
        return cls(
            name=found,
            fn=fn,
            signature=signature,
            title=title,
            description=signature.docstring.description if description is None else description,
            icons=tuple(icons or ()),
            meta=meta,
            is_async=is_async(fn),
            in_thread=in_thread,
        )

    def to_wire(self) -> Wire:
        optional = {"title": self.title, "description": self.description, "arguments": self._arguments()}
        wire: Wire = {"name": self.name, **{key: value for key, value in optional.items() if value}}
        return {**wire, **icons_and_meta(self.icons, self.meta)}

    def _arguments(self) -> list[Wire]:
        listed: list[Wire] = []
        for name, schema in self.signature.input_schema["properties"].items():
            told = {key: schema[key] for key in ("title", "description") if key in schema}
            listed.append({"name": name, **told, "required": name in self.signature.required})
        return listed

    def bind(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Keyword arguments for the function.

        Raises:
            InvalidParams: one is missing or does not fit; the message names it.
        """
        try:
            return self.signature.bind(arguments)
        except ArgumentError as error:
            raise InvalidParams(str(error)) from error

    def messages(self, value: object) -> list[Wire]:
        """What the function returned: a message, text, content, a dict of role and content, or a list of these.

        Raises:
            ToolError: it is something else.
        """
        values = value if isinstance(value, list | tuple) else [value]
        try:
            messages = [self._message(item) for item in values]
        except OSError as error:
            raise ToolError(f"Prompt {self.name!r} returned media whose file cannot be read") from error
        for message in messages:
            encoded(message, self.name)
        return messages

    def _message(self, value: object) -> Wire:
        if isinstance(value, Message):
            return value.to_wire()
        if isinstance(value, Mapping) and value.get("role") in get_args(Role) and "content" in value:
            return {"role": value["role"], "content": self._content(value["content"])}
        return {"role": "user", "content": self._content(value)}

    def _content(self, value: object) -> Wire:
        if isinstance(value, Mapping) and isinstance(value.get("type"), str):
            return dict(value)
        block: ContentBlock | None = as_block(value)
        if block is None:
            raise ToolError(f"Prompt {self.name!r} returned a {type(value).__name__}; return text, messages or content")
        return block.to_wire()
