"""The results of `tools/call`, in the shape of a revision: what a tool returned, or what is said when it could not."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mcp_stateless.definitions.tool import MISSING, Tool, object_structured
from mcp_stateless.errors import ProtocolError, ToolError
from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.revisions import Revision, Wire

R = TypeVar("R")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadyResult:
    """A result as the wire has it already: that of another call."""

    wire: Wire


def tool_result(tool: Tool, value: object, revision: Revision) -> Wire:
    """What the function returned.

    Raises:
        ToolError: it cannot be sent.
    """
    if isinstance(value, ReadyResult):
        return value.wire
    result = tool.result(value)
    wire: Wire = {
        "content": [revisions.content(block, revision) for block in result.content],
        "isError": result.is_error,
    }
    if result.structured is not MISSING:
        wire["structuredContent"] = (
            result.structured if revision.modern else object_structured(tool.output_schema, result.structured)
        )
    if result.meta:
        wire["_meta"] = result.meta
    return revisions.fields("call", wire, revision)


def failure(text: str) -> Wire:
    """A result that says what went wrong; it never carries structured content."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def told(name: str, error: BaseException, reference: str) -> ProtocolError | ToolError:
    """What the client is told of an exception: what an author raised on purpose, else one sentence and a reference."""
    if isinstance(error, ProtocolError | ToolError):
        return error
    log.error("%s failed, reference %s", name, reference, exc_info=error)
    masked = ToolError(f"{name} failed unexpectedly. Reference for the operator: {reference}")
    masked.__cause__ = error
    return masked


def guarded(read: Callable[[], R], name: str, reference: str) -> R:
    """Read arguments in, or a result out: there, too, an author's code runs, in validators and serialisers."""
    try:
        return read()
    except Exception as error:
        raise told(name, error, reference) from error
