"""The whole HTTP behaviour of a server as one plain ASGI callable: statuses, headers, CORS, limits, JSON or SSE.

FastAPI may hold it (`http.py`) or Mangum may wrap it alone: one path, two weights. Each request is answered on its own;
nothing is remembered between two of them, and no lifespan is needed to serve.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mcp_stateless.calls import polled
from mcp_stateless.context import Headers
from mcp_stateless.cors import Cors
from mcp_stateless.errors import InternalError, InvalidRequest, ProtocolError
from mcp_stateless.exchange import Environment, Exchange
from mcp_stateless.invocation import LOCAL, SCOPE_KEY, Invocation
from mcp_stateless.methods import answer, completed
from mcp_stateless.principal import ANONYMOUS
from mcp_stateless.protocol import envelope, inbound, sse
from mcp_stateless.protocol.envelope import Notification, Response
from mcp_stateless.protocol.inbound import Accepted, Batch, Call, Refused
from mcp_stateless.protocol.media import JSON, accepts, is_json
from mcp_stateless.protocol.revisions import ASSUMED, REVISIONS, Wire
from mcp_stateless.protocol.sealing import Rejected
from mcp_stateless.registry import Registry
from mcp_stateless.results import failure

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
StartHook: TypeAlias = Callable[[], object]

MAX_HEADER_BYTES: Final = 32 * 1024
"""Names and values together. API Gateway's own quota is 10,240 bytes, an ALB's 64 KB."""

RESULT_OVERHEAD: Final = 2048
"""Bytes left for what surrounds the body in the invocation result: status, headers, field names."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response. An empty body goes out without a content type."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Endpoint:
    """The MCP endpoint and the health path of one server, as an ASGI application."""

    def __init__(self, registry: Registry, environment: Environment, start_hooks: Sequence[StartHook] = ()) -> None:
        settings = environment.settings
        self._registry = registry
        self._environment = environment
        self._settings = settings
        self._cors = Cors(settings.allowed_origins)
        self._start_hooks = start_hooks
        self._starting: asyncio.Future[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route by path; what `http.py` leaves to FastAPI's router."""
        if scope["type"] == "lifespan":
            return await _lifespan(receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        if path == self._settings.path:
            await self.serve(scope, receive, send)
        elif path == self._settings.health_path:
            await self.health(scope, receive, send)
        else:
            await _send(Reply(404), send)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The MCP endpoint, whatever path it is mounted at."""
        headers = _headers(scope)
        origin = headers.get("origin")
        try:
            reply = await self._reply(scope, headers, receive)
        except ProtocolError as error:
            reply = _refusal(Refused(error, status=500))
        except Exception:  # The boundary to HTTP: nothing may leave as a traceback or as text that is not JSON-RPC.
            log.exception("the request failed")
            reply = _refusal(Refused(InternalError("Internal error"), status=500))
        await _send(reply, send, self._cors.response_headers(origin))

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Up, and which server; no start-up hook, store or token is involved."""
        card = {"status": "ok", **self._registry.implementation.to_wire()}
        body = envelope.encode({key: card[key] for key in ("status", "name", "version")})
        if scope["method"] in ("GET", "HEAD"):
            return await _send(Reply(200, b"" if scope["method"] == "HEAD" else body), send)
        await _send(Reply(405, headers={"allow": "GET, HEAD"}), send)

    async def _reply(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Reply:
        """The order of checks: preflight, origin, method, then what costs reading."""
        if scope["method"] == "OPTIONS":
            return Reply(204, headers=self._cors.preflight_headers(headers))
        if not self._cors.allows(headers.get("origin")):
            return _refusal(Refused(InvalidRequest("Forbidden: the origin is not allowed"), status=403))
        if scope["method"] == "GET" and self._is_poll(headers):
            return await self._polled(headers["last-event-id"], scope.get(SCOPE_KEY, LOCAL))
        if scope["method"] != "POST":
            return Reply(405, headers={"allow": "POST, OPTIONS"})
        invocation = scope.get(SCOPE_KEY, LOCAL)
        if refused := _unfit(scope, headers):
            return _refusal(refused)
        limit = min(self._settings.max_request_bytes, invocation.max_request_bytes)
        body = await _read(headers, receive, limit)
        if body is None:
            error = InvalidRequest(f"Payload too large: the body may have {limit} bytes")
            return _refusal(Refused(error, status=413))
        await self.started()
        return await self._post(body, headers, invocation)

    async def _post(self, body: bytes, headers: Mapping[str, str], invocation: Invocation) -> Reply:
        try:
            value = envelope.decode(body)
        except ProtocolError as error:
            return _refusal(Refused(error))
        match inbound.route(value, headers, self._settings.revisions):
            case Call() as call:
                return await self._single(call, headers, invocation)
            case Batch(calls):
                # The answers share one body: none of them can be a stream of its own.
                plain = {**headers, "accept": JSON}
                answers = [self._message(self._exchange(call, plain, invocation)) for call in calls]
                messages = [message for message, _ in await asyncio.gather(*answers)]
                return self._json(messages, 200, invocation) or self._too_large(None, invocation)
            case Refused() as refused:
                return _refusal(refused)
            case Accepted(message):
                await self._take_note(message, headers, invocation)
                return Reply(202)

    async def _single(self, call: Call, headers: Mapping[str, str], invocation: Invocation) -> Reply:
        exchange = self._exchange(call, headers, invocation)
        message, status = await self._message(exchange)
        if exchange.stream is not None:
            return Reply(200, exchange.stream, sse.CONTENT_TYPE)
        notifications = exchange.collector.messages
        takes_json, takes_sse = accepts(headers.get("accept"))
        if takes_sse and (not takes_json or (notifications and not self._settings.json_response)):
            events = [envelope.encode(item) for item in (*notifications, message)]
            body = sse.finished(events)
            if len(events[-1]) <= self._settings.max_event_bytes and _fits(body, invocation):
                return Reply(status, body, sse.CONTENT_TYPE, exchange.reply_headers)
        return self._json(message, status, invocation, exchange.reply_headers) or self._too_large(exchange, invocation)

    async def _message(self, exchange: Exchange) -> tuple[Wire, int]:
        call = exchange.call
        try:
            return envelope.result_message(call.id, await answer(self._registry, exchange)), 200
        except ProtocolError as error:
            code = inbound.code_of(error, call.revision)
            return envelope.error_message(call.id, error, code), inbound.status_of(error, call.revision)

    def _exchange(self, call: Call, headers: Mapping[str, str], invocation: Invocation) -> Exchange:
        return Exchange(call, self._environment, Headers(headers), invocation)

    def _json(
        self, message: object, status: int, invocation: Invocation, headers: Mapping[str, str] | None = None
    ) -> Reply | None:
        body = envelope.encode(message)
        return Reply(status, body, headers=headers or {}) if _fits(body, invocation) else None

    def _is_poll(self, headers: Mapping[str, str]) -> bool:
        """A GET that asks for what became of a call. Without an id it asks for a stream that nobody can hold."""
        revision = REVISIONS.get(headers.get(inbound.VERSION_HEADER, ""))
        is_modern = revision is not None and revision.modern
        return self._environment.desk is not None and bool(headers.get("last-event-id")) and not is_modern

    async def _polled(self, event_id: str, invocation: Invocation) -> Reply:
        desk, hold_s = self._environment.desk, invocation.time_for(self._settings.hold_seconds)
        assert desk is not None, "without a desk a GET is no poll"
        try:
            body = await polled.poll(desk, event_id, ANONYMOUS, hold_s, lambda body: _fits(body, invocation))
        except Rejected as reason:
            log.warning("an event id was refused: %s", reason)
            return _refusal(Refused(InvalidRequest("Invalid Last-Event-ID")))
        if body is None:
            return Reply(405, headers={"allow": "POST, OPTIONS"})
        return Reply(200, body, sse.CONTENT_TYPE)

    async def _take_note(
        self, message: Notification | Response | None, headers: Mapping[str, str], invocation: Invocation
    ) -> None:
        """What an accepted message leads to. A cancellation counts only from the client that made the call."""
        desk = self._environment.desk
        if desk is None or message is None:
            return
        if isinstance(message, Response):
            if message.id is not None:
                await polled.take_answer(desk, message.id, message.outcome, ANONYMOUS)
            return
        rpc_id = message.params.get("requestId")
        if message.method == "notifications/cancelled" and envelope.is_id(rpc_id):
            client = self._exchange(Call(0, message.method, message.params, ASSUMED), headers, invocation).client
            if client is not None:
                await desk.cancel(client.call_id(rpc_id))

    def _too_large(self, exchange: Exchange | None, invocation: Invocation) -> Reply:
        """The answer in place of one that the platform would refuse to carry; always HTTP 200, so that it is read."""
        text = f"is too large: a reply may have {invocation.max_response_bytes} bytes, encoded for Lambda"
        if exchange is None:
            error = InternalError(f"The batch's result {text}")
            return Reply(200, envelope.encode(envelope.error_message(None, error)))
        call = exchange.call
        if call.method != "tools/call":
            error = InternalError(f"The result of {call.method} {text}")
            return Reply(200, envelope.encode(envelope.error_message(call.id, error)))
        result = failure(f"The result of {call.params['name']} {text}. Ask for less, or for a part of it.")
        if call.revision.modern:
            result = completed(self._registry, exchange, result)
        return Reply(200, envelope.encode(envelope.result_message(call.id, result)))

    async def started(self) -> None:
        """Run the start-up hooks, once per process: the first request runs them, requests at the same time wait."""
        if not self._start_hooks:
            return
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.ensure_future(self._run_start_hooks())
        await asyncio.shield(self._starting)

    async def _run_start_hooks(self) -> None:
        for hook in self._start_hooks:
            pending = hook()
            if isinstance(pending, Awaitable):
                await pending


def _unfit(scope: Scope, headers: Mapping[str, str]) -> Refused | None:
    """What can be refused without reading the body."""
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        return Refused(InvalidRequest(f"Header fields too large: {MAX_HEADER_BYTES} bytes at most"), status=431)
    if not is_json(headers.get("content-type")):
        return Refused(InvalidRequest("Unsupported media type: the body must be application/json"), status=415)
    if accepts(headers.get("accept")) == (False, False):
        return Refused(InvalidRequest("Not acceptable: the answer is application/json"), status=406)
    return None


async def _read(headers: Mapping[str, str], receive: Receive, limit: int) -> bytes | None:
    """The body, or None as soon as it is over the limit."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        return None
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        chunk = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            return None
        more = message.get("more_body", False)
    return b"".join(chunks)


def _headers(scope: Scope) -> dict[str, str]:
    """Lower-case names; values of repeated fields are joined by commas and trimmed, as RFC 9110 wants it."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _fits(body: bytes, invocation: Invocation) -> bool:
    """Whether the reply stays under the platform's limit, measured where it applies: as a JSON string in the result.

    Escaped to ASCII, as the older runtimes write it; there each byte of JSON text becomes three characters at most.
    """
    limit = invocation.max_response_bytes
    if limit is None or len(body) * 3 + RESULT_OVERHEAD <= limit:
        return True
    return len(json.dumps(body.decode())) + RESULT_OVERHEAD <= limit


def _refusal(refused: Refused) -> Reply:
    return Reply(refused.status, envelope.encode(envelope.error_message(refused.id, refused.error)))


async def _send(reply: Reply, send: Send, cors: Mapping[str, str] | None = None) -> None:
    headers = {**reply.headers, **(cors or {})}
    if reply.body:
        headers = {"content-type": reply.content_type, "cache-control": "no-store", **headers}
        if reply.content_type == sse.CONTENT_TYPE:
            # A proxy in front must not collect events (2026-07-28, Streamable HTTP).
            headers["x-accel-buffering"] = "no"
    headers["content-length"] = str(len(reply.body))
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": fields})
    await send({"type": "http.response.body", "body": reply.body})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Agree to whatever a server asks: there is nothing to start or to stop."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
