"""A tool: a function, what it takes, what it returns, and what clients are told about it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_stateless.content import Icon, ToolAnnotations
from mcp_stateless.context import Context
from mcp_stateless.definitions.header_params import header_parameters
from mcp_stateless.definitions.host_rules import host_warnings
from mcp_stateless.definitions.output import MISSING, Output, ToolResult, Wire
from mcp_stateless.definitions.parameters import function_name, is_async
from mcp_stateless.definitions.signature import Signature
from mcp_stateless.definitions.structured import object_output_schema, object_structured

__all__ = ["MISSING", "Tool", "ToolResult", "object_output_schema", "object_structured"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tool:
    """Made by `from_function`, once, at registration."""

    name: str
    fn: Callable[..., Any]
    signature: Signature
    output: Output
    header_params: Mapping[str, tuple[str, ...]]
    """Lower-case name of an `Mcp-Param-*` header, without the prefix -> path of the argument it repeats."""
    title: str | None = None
    description: str | None = None
    annotations: ToolAnnotations | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, object] | None = None
    is_async: bool = False
    in_thread: bool = True
    """Whether a function that is not async runs in a thread of its own."""

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Mapping[str, object] | None = None,
        structured_output: bool | None = None,
        input_schema: Mapping[str, Any] | None = None,
        in_thread: bool = True,
    ) -> "Tool":
        """Without a `description`, the docstring speaks; its parameter sections describe the arguments.

        Raises:
            ConfigurationError: the function cannot be a tool; the message says what to change.
        """
        found = function_name(fn, name, "tool")
        label = f"Tool {found!r}"
        signature = Signature.of(fn, name=label, input_schema=input_schema)
        tool = cls(
            name=found,
            fn=fn,
            signature=signature,
            output=Output.of(signature.parameters.returns, name=found, structured=structured_output),
            header_params=header_parameters(signature.input_schema, label),
            title=title,
            description=signature.docstring.description if description is None else description,
            annotations=annotations,
            icons=tuple(icons or ()),
            meta=meta,
            is_async=is_async(fn),
            in_thread=in_thread,
        )
        warnings = list(host_warnings(found, signature.input_schema))
        if warnings:
            log.warning("%s: %s", label, "; ".join(warnings))
        return tool

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return self.signature.input_schema

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """Any JSON Schema, unwrapped; see `object_output_schema` for revisions that want an object."""
        return self.output.schema

    @property
    def context_parameter(self) -> str | None:
        return self.signature.context_parameter

    @property
    def context_type(self) -> type[Context[Any]]:
        return self.signature.context_type

    def result(self, value: object) -> ToolResult:
        """What the function returned, as a result.

        Raises:
            ToolError: the value has no JSON form, or is not what the return annotation says.
        """
        return self.output.result(value)

    def to_wire(self) -> Wire:
        """The tool as the newest revision lists it."""
        wire: Wire = {"name": self.name}
        if self.title is not None:
            wire["title"] = self.title
        if self.description:
            wire["description"] = self.description
        wire["inputSchema"] = dict(self.input_schema)
        if self.output_schema is not None:
            wire["outputSchema"] = dict(self.output_schema)
        if self.annotations is not None:
            wire["annotations"] = self.annotations.to_wire()
        return {**wire, **icons_and_meta(self.icons, self.meta)}


def icons_and_meta(icons: Sequence[Icon], meta: Mapping[str, object] | None) -> Wire:
    wire: Wire = {"icons": [icon.to_wire() for icon in icons]} if icons else {}
    return wire if meta is None else {**wire, "_meta": dict(meta)}
