"""From headers and a decoded body to calls that can be dispatched, or to a refusal. Pure.

One endpoint serves both eras. The era is decided by the version a request declares, never by its shape:

- `_meta` names a version            -> modern: all about the request is in it, checked in the order below
- else the header names a modern one -> refused: the `_meta` that this version requires is missing
- else                               -> legacy: the header's revision, or 2025-03-26 where there is none

A modern request is checked in one order, so that each check can be reached: `_meta` keys (-32602), headers against the
body (-32020), version served (-32022), then, by the methods, method known (-32601), params (-32602), parameter headers
(-32020), client capabilities (-32021).
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from mcp_stateless.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    ProtocolError,
    ResourceNotFound,
    UnsupportedVersion,
)
from mcp_stateless.protocol.envelope import Notification, Request, RequestId, Response, read, readable_id
from mcp_stateless.protocol.revisions import ASSUMED, REVISIONS, Revision, Wire, modern_names, newest_legacy

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""RFC 5424 severities, least severe first."""

MAX_BATCH: Final = 50
"""Messages in one 2025-03-26 batch. No client is known to send more than a handful."""

_NAMED_BY: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The param that `Mcp-Name` mirrors, by method (2026-07-28, Streamable HTTP: "Request Metadata")."""

_NAME_MAY_BE_MISSING: Final = ("tasks/get", "tasks/update", "tasks/cancel")
"""FastMCP's client sends no name with these; one that is sent still has to be right."""

_MODERN_STATUS: Final[Mapping[int, int]] = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}
"""HTTP status of errors that methods raise at 2026-07-28. All others are 200: a dual-era client that reads 400 with
anything but these codes takes the server for a legacy one."""

STATE_REFUSED: Final = "Invalid params: the request state does not hold"
"""What every `requestState` that does not open is answered with, of whatever kind it is; why is in the log."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, checked as far as headers and envelope go."""

    id: RequestId
    method: str
    params: Mapping[str, object]
    revision: Revision
    meta: Mapping[str, object] = field(default_factory=dict)
    client_capabilities: Mapping[str, object] = field(default_factory=dict)
    """What this very request declares; a legacy request after `initialize` declares nothing."""
    log_level: LogLevel | None = None
    progress_token: str | int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A 2025-03-26 array. The answer is an array of the calls' answers, or a bare 202 when there are none."""

    calls: Sequence[Call]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Notifications and posted responses: answered by a bare 202, whatever comes of them."""

    message: Notification | Response | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """What cannot be served, with the status and the id for the error."""

    error: ProtocolError
    status: int = 400
    id: RequestId | None = None


Inbound: TypeAlias = Call | Batch | Accepted | Refused


def route(value: object, headers: Mapping[str, str], served: Sequence[str]) -> Inbound:
    """Decide what a decoded POST body is. `headers` has lower-case names, repeated ones joined by commas."""
    try:
        if isinstance(value, list):
            return _batch(value, headers, served)
        message = read(value)
        if isinstance(message, Request):
            return _call(message, headers, served)
        if isinstance(message, Response) and names_modern(headers):
            raise InvalidRequest("Invalid request: clients do not post responses at this protocol version")
        return _accepted(message, headers, served)
    except ProtocolError as error:
        return Refused(error, id=readable_id(value))


def status_of(error: ProtocolError, revision: Revision) -> int:
    """HTTP status of an error that a method raised. Legacy clients read JSON-RPC errors only in a 200."""
    return _MODERN_STATUS.get(error.code, 200) if revision.modern else 200


def code_of(error: ProtocolError, revision: Revision) -> int:
    """JSON-RPC code of an error at a revision."""
    return error.legacy_code if isinstance(error, ResourceNotFound) and not revision.modern else error.code


def decode_header(value: str) -> str:
    """Undo the base64 wrapping `=?base64?...?=` of a mirrored value; text without the whole wrapper is literal.

    Raises:
        HeaderMismatch: the wrapper is there and what it wraps is not strict base64 of UTF-8.
    """
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= len("=?base64??=")):
        return value
    wrapped = value[len("=?base64?") : -len("?=")]
    try:
        raw = base64.b64decode(wrapped, validate=True)
        if base64.b64encode(raw).decode() != wrapped:
            raise ValueError("padded too much, or bits left over")
        return raw.decode()
    except ValueError as error:  # of which both decoders' own errors are kinds
        raise HeaderMismatch("Header mismatch: a mirrored header is not valid base64") from error


def _batch(value: list[object], headers: Mapping[str, str], served: Sequence[str]) -> Inbound:
    """All or nothing: a batch with one bad message is refused before anything in it runs."""
    version = headers.get(VERSION_HEADER, ASSUMED.name)
    if version not in served or not REVISIONS[version].batches or any(_is_modern(item) for item in value):
        raise InvalidRequest("Invalid request: batches are not supported at this protocol version")
    if not 0 < len(value) <= MAX_BATCH:
        raise InvalidRequest(f"Invalid request: a batch holds 1 to {MAX_BATCH} messages")
    requests = [message for item in value if isinstance(message := read(item), Request)]
    if any(request.method == "initialize" for request in requests):
        raise InvalidRequest("Invalid request: initialize must not be part of a batch")
    calls = [_legacy(request, REVISIONS[version]) for request in requests]
    return Batch(calls) if calls else Accepted()


def _call(request: Request, headers: Mapping[str, str], served: Sequence[str]) -> Call:
    meta = request.params.get("_meta")
    if isinstance(meta, dict) and META_VERSION in meta:
        return _modern(request, meta, headers, served)
    if request.method == "initialize":
        return _legacy(request, _handshake(request, served))
    if names_modern(headers) and headers[VERSION_HEADER] in served:
        raise InvalidParams(f'Invalid params: "_meta" must carry {META_VERSION} and {META_CAPABILITIES}')
    return _legacy(request, _legacy_revision(headers, served))


def _handshake(request: Request, served: Sequence[str]) -> Revision:
    """The negotiated revision: the one asked for if it is served, else our newest. Headers do not matter here."""
    newest = newest_legacy(served)
    asked = request.params.get("protocolVersion")
    if newest is None:
        raise UnsupportedVersion(str(asked), served)
    if isinstance(asked, str) and asked in served and not REVISIONS[asked].modern:
        return REVISIONS[asked]
    return newest


def _legacy_revision(headers: Mapping[str, str], served: Sequence[str]) -> Revision:
    if VERSION_HEADER not in headers and newest_legacy(served) is not None:
        return ASSUMED
    name = headers.get(VERSION_HEADER, ASSUMED.name)
    if name in served and not REVISIONS[name].modern:
        return REVISIONS[name]
    modern = modern_names(served)
    if modern:
        # Only a client that is neither header-less nor at a known revision reads this; the code tells it what to do.
        raise UnsupportedVersion(name, modern)
    raise InvalidRequest(f"Unsupported protocol version; supported: {', '.join(served)}")


def _legacy(request: Request, revision: Revision) -> Call:
    meta = request.params.get("_meta", {})
    if not isinstance(meta, dict):
        raise InvalidParams('Invalid params: "_meta" must be an object')
    return Call(request.id, request.method, request.params, revision, meta=meta, progress_token=_progress_token(meta))


def _modern(request: Request, meta: Mapping[str, object], headers: Mapping[str, str], served: Sequence[str]) -> Call:
    version, capabilities = meta[META_VERSION], meta.get(META_CAPABILITIES)
    if not isinstance(version, str):
        raise InvalidParams(f'Invalid params: "_meta" must name {META_VERSION} as a string')
    if not isinstance(capabilities, dict):
        raise InvalidParams(f'Invalid params: "_meta" must carry {META_CAPABILITIES} as an object')
    _check_headers(request, version, headers)
    if version not in modern_names(served):
        raise UnsupportedVersion(version, modern_names(served) or served)
    return Call(
        request.id,
        request.method,
        request.params,
        REVISIONS[version],
        meta=meta,
        client_capabilities=capabilities,
        log_level=_log_level(meta),
        progress_token=_progress_token(meta),
    )


def _check_headers(request: Request, version: str, headers: Mapping[str, str]) -> None:
    """Mirrored headers are there and say what the body says, letter by letter."""
    if headers.get(VERSION_HEADER) != version:
        raise HeaderMismatch("Header mismatch: MCP-Protocol-Version must equal the version in _meta")
    if headers.get(METHOD_HEADER) != request.method:
        raise HeaderMismatch("Header mismatch: Mcp-Method must equal the method")
    name = request.params.get(_NAMED_BY.get(request.method, ""))
    if not isinstance(name, str):
        return  # Nothing to mirror; a missing name is a fault of the params, which the method reports.
    header = headers.get(NAME_HEADER)
    if header is None and request.method in _NAME_MAY_BE_MISSING:
        return
    if header is None or decode_header(header) != name:
        raise HeaderMismatch(f"Header mismatch: Mcp-Name must equal params.{_NAMED_BY[request.method]}")


def _accepted(message: Notification | Response, headers: Mapping[str, str], served: Sequence[str]) -> Accepted:
    name = headers.get(VERSION_HEADER)
    if name is not None and name not in served:
        raise InvalidRequest(f"Unsupported protocol version; supported: {', '.join(served)}")
    return Accepted(message)


def _progress_token(meta: Mapping[str, object]) -> str | int | None:
    token = meta.get("progressToken")
    if token is None or (isinstance(token, str | int) and not isinstance(token, bool)):
        return token
    raise InvalidParams('Invalid params: "progressToken" must be a string or an integer')


def log_level(name: object) -> LogLevel | None:
    """The level of that name, if there is one."""
    return next((level for level in LOG_LEVELS if level == name), None)


def _log_level(meta: Mapping[str, object]) -> LogLevel | None:
    name = meta.get(META_LOG_LEVEL)
    level = log_level(name)
    if name is None or level is not None:
        return level
    raise InvalidParams(f"Invalid params: the log level must be one of {', '.join(LOG_LEVELS)}")


def input_responses(params: Mapping[str, object]) -> Mapping[str, Wire]:
    """The client's answers to questions, by key (2026-07-28).

    Raises:
        InvalidParams: they are missing, or not an object of objects.
    """
    answers = params.get("inputResponses")
    if not isinstance(answers, dict) or not all(isinstance(answer, dict) for answer in answers.values()):
        raise InvalidParams('Invalid params: "inputResponses" must be an object whose values are objects')
    return answers


def names_modern(headers: Mapping[str, str]) -> bool:
    """Whether the version header names a revision of the modern era."""
    revision = REVISIONS.get(headers.get(VERSION_HEADER, ""))
    return revision is not None and revision.modern


def _is_modern(item: object) -> bool:
    params = item.get("params") if isinstance(item, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and META_VERSION in meta
