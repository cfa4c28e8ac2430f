"""JSON-RPC 2.0 as MCP uses it: bytes to messages, messages to bytes.

The rule kept here: whether a key is there decides what a message is, never whether its value is truthy. An id is a
string or an integer; it is echoed as it came and never coerced. An id that cannot be read is left out of the error.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeGuard

from pydantic_core import from_json

from mcp_stateless.errors import InvalidParams, InvalidRequest, ParseError, ProtocolError
from mcp_stateless.protocol.revisions import Wire

RequestId: TypeAlias = str | int

BOM: Final = b"\xef\xbb\xbf"
"""A byte order mark before the body; RFC 8259 lets a parser ignore it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A message that wants an answer."""

    id: RequestId
    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that wants none. Its params are not looked at: whatever it says, it is accepted."""

    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Response:
    """A client's answer to a request of ours."""

    id: RequestId | None
    """None: an error about something whose id the client could not read."""
    outcome: Mapping[str, object]
    """`{"result": ...}` or `{"error": ...}`."""


Message: TypeAlias = Request | Notification | Response


def decode(body: bytes) -> object:
    """Parse a body.

    Raises:
        ParseError: it is not one JSON text in UTF-8, nests deeper than 200 levels, or holds NaN or Infinity.
    """
    try:
        return from_json(body.removeprefix(BOM), allow_inf_nan=False)
    except ValueError as error:
        raise ParseError("Parse error: the body is not valid JSON") from error


def read(value: object) -> Message:
    """Tell what a decoded value is.

    Raises:
        InvalidRequest: it is not a JSON-RPC 2.0 message.
        InvalidParams: it is one, and its `params` are not an object.
    """
    if not isinstance(value, dict):
        raise InvalidRequest("Invalid request: the body must be one JSON-RPC object")
    if value.get("jsonrpc") != "2.0":
        raise InvalidRequest('Invalid request: "jsonrpc" must be "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return Response(readable_id(value), {key: value[key] for key in ("result", "error") if key in value})
    method = value.get("method")
    if not isinstance(method, str) or not method:
        raise InvalidRequest('Invalid request: "method" must be a non-empty string')
    params = value.get("params", {})
    if "id" not in value:
        return Notification(method, params if isinstance(params, dict) else {})
    request_id = _id(value)
    if not isinstance(params, dict):
        raise InvalidParams('Invalid params: "params" must be an object')
    return Request(request_id, method, params)


def readable_id(value: object) -> RequestId | None:
    """The id to put into an error about `value`, or None to leave it out."""
    candidate = value.get("id") if isinstance(value, dict) else None
    return candidate if is_id(candidate) else None


def result_message(request_id: RequestId, result: Mapping[str, object]) -> Wire:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(request_id: RequestId | None, error: ProtocolError, code: int | None = None) -> Wire:
    """An error response. Without a readable id there is no `id` at all (2025-11-25 and later; never null)."""
    head: Wire = {"jsonrpc": "2.0"} if request_id is None else {"jsonrpc": "2.0", "id": request_id}
    return {**head, "error": error_object(error, code)}


def error_object(error: ProtocolError, code: int | None = None) -> Wire:
    """The `error` of an error response; `code` where a revision has another one."""
    body: Wire = {"code": error.code if code is None else code, "message": error.message}
    return body if error.data is None else {**body, "data": error.data}


def notification_message(method: str, params: Mapping[str, object]) -> Wire:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: object) -> bytes:
    """Write a message on one line, characters unescaped.

    Raises:
        ValueError: a number in it is NaN or infinite, which JSON cannot say.
    """
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # A lone surrogate, in a name the author gave: escaped it is valid JSON, as UTF-8 it is not.
        return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def _id(value: Mapping[str, object]) -> RequestId:
    candidate = value.get("id")
    if not is_id(candidate):
        raise InvalidRequest('Invalid request: "id" must be a string or an integer')
    return candidate


def is_id(candidate: object) -> TypeGuard[RequestId]:
    """A string or an integer; a boolean is neither."""
    return isinstance(candidate, str) or (isinstance(candidate, int) and not isinstance(candidate, bool))
