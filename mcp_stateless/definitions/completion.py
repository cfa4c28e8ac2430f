"""The completion function: suggests values for an argument of a prompt or a variable of a resource template."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_stateless.content import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from mcp_stateless.context import Context
from mcp_stateless.definitions.json_text import encoded
from mcp_stateless.definitions.output import Wire
from mcp_stateless.definitions.parameters import Parameters, is_async, read_parameters
from mcp_stateless.errors import ConfigurationError, InvalidParams, ToolError

_TAKEN: Final = ("ref", "argument", "context")


@dataclass(frozen=True, slots=True)
class CompletionProvider:
    """One function answers for all prompts and templates of a server."""

    name: str
    fn: Callable[..., Any]
    parameters: Parameters
    is_async: bool
    in_thread: bool = True

    @classmethod
    def from_function(cls, fn: Callable[..., Any], *, in_thread: bool = True) -> "CompletionProvider":
        """Raises ConfigurationError unless `fn` takes the reference, the argument and the context, in this order."""
        label = "The completion function"
        parameters = read_parameters(fn, label)
        if len(parameters.named) != len(_TAKEN) or parameters.extra is not None:
            raise ConfigurationError(f"{label} takes three parameters: {', '.join(_TAKEN)}; and a Context if it likes")
        return cls(getattr(fn, "__name__", "completion"), fn, parameters, is_async(fn), in_thread)

    @property
    def digest(self) -> str:
        """The same for all: a completion has no second run whose arguments could have changed."""
        return ""

    @property
    def context_parameter(self) -> str | None:
        return self.parameters.context_name

    @property
    def context_type(self) -> type[Context[Any]]:
        return self.parameters.context_type

    def bind(
        self, params: Mapping[str, object], prompts: Mapping[str, object], templates: Mapping[str, object]
    ) -> dict[str, object]:
        """Keyword arguments from the params of `completion/complete`; `prompts` and `templates` are those served.

        Raises:
            InvalidParams: the params are malformed, or refer to what is not served.
        """
        values = (_reference(params.get("ref"), prompts, templates), _argument(params), _context(params))
        return {item.name: value for item, value in zip(self.parameters.named, values, strict=True)}

    def completion(self, value: object) -> Wire:
        """What the function returned: a `Completion`, its values, or None for no suggestions.

        Raises:
            ToolError: it is something else.
        """
        if value is None:
            value = Completion([])
        elif isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
            value = Completion(list(value))
        if not isinstance(value, Completion) or not all(isinstance(item, str) for item in value.values):
            raise ToolError(f"The completion function returned a {type(value).__name__}; return a list of str")
        wire = value.to_wire()
        encoded(wire, "The completion function")
        return wire


def _reference(
    ref: object, prompts: Mapping[str, object], templates: Mapping[str, object]
) -> PromptReference | ResourceTemplateReference:
    match ref:
        case {"type": "ref/prompt", "name": str(name)}:
            if name not in prompts:
                raise InvalidParams("Unknown prompt")
            return PromptReference(name)
        case {"type": "ref/resource", "uri": str(uri)}:
            if uri not in templates:
                raise InvalidParams("Unknown resource template")
            return ResourceTemplateReference(uri)
        case _:
            raise InvalidParams('Invalid params: "ref" must name a prompt or a resource template')


def _argument(params: Mapping[str, object]) -> CompletionArgument:
    match params.get("argument"):
        case {"name": str(name), "value": str(value)}:
            return CompletionArgument(name, value)
        case _:
            raise InvalidParams('Invalid params: "argument" must have a name and a value')


def _context(params: Mapping[str, object]) -> CompletionContext | None:
    match params.get("context"):
        case None:
            return None
        case {"arguments": dict(arguments)} if all(isinstance(value, str) for value in arguments.values()):
            return CompletionContext(arguments)
        case {} as empty if "arguments" not in empty:
            return CompletionContext()
        case _:
            raise InvalidParams('Invalid params: "context" must hold arguments, each a string')
