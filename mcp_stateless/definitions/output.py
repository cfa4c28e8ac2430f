"""The value a tool returned as a result: content blocks, and structured content that fits the output schema.

Owns the agreement of the three: the schema comes from the return annotation, the structured value is serialised by the
same type, and the text is the JSON of that value. A value that does not fit its own annotation never leaves; the error
names the place and the type, never the value, which may be a secret of the author's.
"""

import logging
import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, Never, NoReturn, TypeAlias, get_args, get_origin
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, SchemaValidator

from mcp_stateless.content import (
    Audio,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    Image,
    ResourceContents,
    TextContent,
    as_block,
)
from mcp_stateless.definitions.conformity import conformity_check
from mcp_stateless.definitions.json_schema import result_schema
from mcp_stateless.definitions.json_text import encoded, jsonable, refusal, type_name, unserialisable
from mcp_stateless.definitions.parameters import EMPTY
from mcp_stateless.definitions.problems import MISSING_TYPES, UNUSABLE_TYPE, describe, field_path, first_sentence
from mcp_stateless.errors import ConfigurationError, ToolError

log = logging.getLogger(__name__)

Wire: TypeAlias = dict[str, object]


class Missing(Enum):
    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""No structured content; None is a value."""

_CONTENT: Final = (*get_args(ContentBlock), *get_args(ResourceContents), Image, Audio, CallToolResult, bytes)
_SHAPELESS: Final = (EMPTY, Any, object, None, types.NoneType, Never, NoReturn)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result in the newest revision's terms; `structured` is what the unwrapped output schema describes."""

    content: list[Wire]
    structured: object = MISSING
    is_error: bool = False
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool promises to return. Without a schema, whatever it returns becomes content."""

    name: str
    schema: Mapping[str, Any] | None = None
    _adapter: TypeAdapter[Any] | None = None
    _check: SchemaValidator | None = None

    @classmethod
    def of(cls, returns: Any, *, name: str, structured: bool | None) -> "Output":
        """Read the return annotation. `structured` None means: if there is one and JSON Schema can express it.

        Raises:
            ConfigurationError: structured output is demanded and cannot be had.
        """
        returned, label = _returned(returns), f"Tool {name!r}"
        if structured is False or (structured is None and (returned is str or _is_content(returned))):
            # A plain text is whole as content; structured as well, every result would be sent twice.
            return cls(name)
        if _is_content(returned):
            raise ConfigurationError(
                f"{label}: structured_output=True needs a return annotation that JSON Schema can express; "
                "annotate the data that is returned, or leave structured_output out"
            )
        try:
            adapter = TypeAdapter(returned)
            schema = result_schema(adapter)
            return cls(name, schema, adapter, conformity_check(schema))
        except UNUSABLE_TYPE as error:
            reason = first_sentence(error)
            if structured:
                raise ConfigurationError(
                    f"{label}: structured_output=True, but the return annotation has no JSON Schema: {reason}. "
                    "Return a model, a dataclass or plain data"
                ) from error
            log.warning("%s has no output schema: %s. structured_output=False says that this is meant", label, reason)
            return cls(name)

    @property
    def label(self) -> str:
        return f"Tool {self.name!r}"

    def result(self, value: object) -> ToolResult:
        """`value` as the function returned it.

        Raises:
            ToolError: it has no JSON form, or is not what the annotation says.
        """
        if isinstance(value, CallToolResult):
            return self._whole(value)
        if self._adapter is None:
            return ToolResult([self._checked(block) for block in self._blocks(value)])
        structured, text = self._structured(value)
        return ToolResult([text], structured)

    def _whole(self, result: CallToolResult) -> ToolResult:
        content = [self._checked(self._block(item)) for item in result.content]
        meta = None if result.meta is None else dict(self._checked(dict(result.meta)))
        if result.is_error:
            # Clients check structured content against the schema even in errors, and then hide the error itself.
            return ToolResult(content, is_error=True, meta=meta)
        if self._adapter is None and result.structured_content is None:
            return ToolResult(content, meta=meta)
        structured, text = self._structured(result.structured_content)
        return ToolResult(content or [text], structured, meta=meta)

    def _structured(self, value: object) -> tuple[object, Wire]:
        """The structured content, and the text block that says the same."""
        structured = jsonable(value, self.label) if self._adapter is None else self._serialised(self._adapter, value)
        text = encoded(structured, self.label, source=value)
        if self._check is not None:
            try:
                self._check.validate_python(structured)
            except ValidationError as error:
                raise self._misfit(error, structured) from error
        return structured, {"type": "text", "text": structured if isinstance(structured, str) else text}

    def _serialised(self, adapter: TypeAdapter[Any], value: object) -> object:
        try:
            valid = adapter.validate_python(value)
            return adapter.dump_python(valid, mode="json", by_alias=True, warnings="none", fallback=refusal(self.label))
        except ValidationError as error:
            raise self._misfit(error, value) from error
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise ToolError(f"{self.label} returned {unserialisable(value, error)}") from error

    def _misfit(self, error: ValidationError, value: object) -> ToolError:
        wrong = [_misfit(item, value) for item in error.errors(include_url=False)]
        return ToolError(describe(wrong, f"{self.label} returned a value that breaks its own type"))

    def _blocks(self, value: object) -> list[ContentBlock]:
        if value is None:
            return []
        if isinstance(value, list | tuple) and any(isinstance(item, _CONTENT) for item in value):
            return [self._block(item) for item in value]
        return [self._block(value)]

    def _block(self, value: object) -> ContentBlock:
        if isinstance(value, bytes):
            contents = BlobResourceContents(
                f"tool:///{quote(self.name, safe='')}/result", value, "application/octet-stream"
            )
            return EmbeddedResource(contents)
        try:
            block = as_block(value)
        except OSError as error:
            raise ToolError(f"{self.label} returned an {type_name(value)} whose file cannot be read") from error
        return TextContent(encoded(jsonable(value, self.label), self.label, source=value)) if block is None else block

    def _checked(self, value: ContentBlock | Wire) -> Wire:
        wire = value if isinstance(value, dict) else value.to_wire()
        encoded(wire, self.label)
        return wire


def _returned(annotation: Any) -> Any:
    """The type of the data; `Annotated[CallToolResult, T]` is a whole result whose structured content is a T."""
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        if base is CallToolResult and metadata:
            return metadata[0]
    return annotation


def _is_content(annotation: Any) -> bool:
    """Whether the annotation says nothing about data: absent, Any, None, or content anywhere in it."""
    if not isinstance(annotation, type):
        annotation = getattr(annotation, "__value__", annotation)  # a `type X = ...` statement
    if any(annotation is shapeless for shapeless in _SHAPELESS):
        return True
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return issubclass(annotation, _CONTENT)
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _is_content(inner[0])
    return any(not any(item is shapeless for shapeless in _SHAPELESS) and _is_content(item) for item in inner)


def _misfit(error: ErrorDetails, value: object) -> tuple[str, str]:
    missing = error["type"] in MISSING_TYPES
    where = field_path(error["loc"], value, missing=missing)
    return where, "missing" if missing else f"{type_name(error['input'])} does not fit"
