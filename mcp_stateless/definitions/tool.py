"""A tool: a function, what it takes, what it returns, and what clients are told about it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from mcp_stateless.content import Icon, ToolAnnotations
from mcp_stateless.definitions.header_params import header_parameters
from mcp_stateless.definitions.host_rules import host_warnings
from mcp_stateless.definitions.output import MISSING, Output, ToolResult, Wire
from mcp_stateless.definitions.parameters import ASKING, DETACHING, function_name, is_async, names_one_of
from mcp_stateless.definitions.signature import HasSignature, Signature
from mcp_stateless.definitions.structured import object_output_schema, object_structured
from mcp_stateless.errors import ConfigurationError

__all__ = ["MISSING", "Tool", "ToolResult", "object_output_schema", "object_structured"]

LongRunning: TypeAlias = Literal["optional", "task"] | bool

DEFAULT_TIMEOUT_S: Final = 120

MAX_TIMEOUT_S: Final = 895
"""Lambda ends an invocation after 900 s; the result still has to be written."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tool(HasSignature):
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
    long_running: LongRunning = False
    timeout_s: int = DEFAULT_TIMEOUT_S
    """What one run of a long-running tool may take."""
    retries: int = 0
    """How often a long-running tool is started again when its worker was lost."""
    requires: Mapping[str, object] = field(default_factory=dict)
    """Client capabilities without which it is not called, as in `ClientCapabilities`."""
    asks: bool = False
    """Whether it may ask the client something."""
    scopes: frozenset[str] = frozenset()
    """What a caller's token must allow."""
    detaches: bool = False
    """Whether it starts in the request and detaches from it later."""

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
        long_running: LongRunning = False,
        timeout_seconds: int = DEFAULT_TIMEOUT_S,
        retries: int = 0,
        requires: Sequence[str] = (),
        asks: bool | None = None,
        detaches: bool | None = None,
        scopes: Sequence[str] = (),
    ) -> "Tool":
        """Without a `description`, the docstring speaks; its parameter sections describe the arguments.

        Raises:
            ConfigurationError: the function cannot be a tool; the message says what to change.
        """
        found = function_name(fn, name, "tool")
        label = f"Tool {found!r}"
        leaves = names_one_of(DETACHING, fn) if detaches is None else detaches
        _check_long_running(label, long_running, timeout_seconds, retries, leaves)
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
            long_running=long_running,
            timeout_s=timeout_seconds,
            retries=retries,
            requires=_capabilities(label, requires),
            asks=bool(requires) or names_one_of(ASKING, fn) if asks is None else asks,
            detaches=leaves,
            scopes=frozenset(_texts(label, "scopes", scopes)),
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


def _check_long_running(
    label: str, long_running: LongRunning, timeout_seconds: int, retries: int, detaches: bool
) -> None:
    if long_running not in (False, True, "optional", "task"):
        raise ConfigurationError(f'{label}: long_running takes False, True, "optional" or "task"')
    if not 0 < timeout_seconds <= MAX_TIMEOUT_S or retries < 0:
        raise ConfigurationError(f"{label}: timeout_seconds takes 1 to {MAX_TIMEOUT_S}, retries 0 or more")
    if long_running is False and not detaches and (timeout_seconds != DEFAULT_TIMEOUT_S or retries):
        raise ConfigurationError(f"{label}: timeout_seconds and retries are for tools with long_running=True")


def _texts(label: str, argument: str, values: Sequence[str]) -> Sequence[str]:
    if isinstance(values, str):
        raise ConfigurationError(f"{label}: {argument} takes a list, such as [{values!r}]")
    return values


def _capabilities(label: str, requires: Sequence[str]) -> Mapping[str, object]:
    known: dict[str, Mapping[str, object]] = {
        "elicitation": {"elicitation": {"form": {}}},
        "elicitation.url": {"elicitation": {"url": {}}},
        "sampling": {"sampling": {}},
        "roots": {"roots": {}},
    }
    unknown = [name for name in requires if name not in known]
    if isinstance(requires, str) or unknown:
        raise ConfigurationError(f"{label}: requires takes a list of {', '.join(known)}")
    needed: dict[str, object] = {}
    for name in requires:
        for capability, details in known[name].items():
            earlier = needed.get(capability)
            assert isinstance(details, dict)
            needed[capability] = {**earlier, **details} if isinstance(earlier, dict) else details
    return needed


def icons_and_meta(icons: Sequence[Icon], meta: Mapping[str, object] | None) -> Wire:
    wire: Wire = {"icons": [icon.to_wire() for icon in icons]} if icons else {}
    return wire if meta is None else {**wire, "_meta": dict(meta)}
