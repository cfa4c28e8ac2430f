"""The whole HTTP behaviour of a server as one plain ASGI callable: statuses, headers, CORS, limits, JSON or SSE.

FastAPI may hold it (`http.py`) or Mangum may wrap it alone: one path, two weights. Each request is answered on its own;
nothing is remembered between two of them, and no lifespan is needed to serve.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcp_stateless.access import FORBIDDEN, UNAUTHORIZED, Access
from mcp_stateless.asgi import Receive, Reply, Scope, Send, fits, headers_of, lifespan, read_body, refusal, send_reply
from mcp_stateless.calls import polled
from mcp_stateless.context import Headers
from mcp_stateless.cors import Cors
from mcp_stateless.errors import (
    ConfigurationError,
    InsufficientScope,
    InternalError,
    InvalidRequest,
    ProtocolError,
    Unauthorized,
)
from mcp_stateless.exchange import Environment, Exchange
from mcp_stateless.identity import check_scopes
from mcp_stateless.invocation import LOCAL, SCOPE_KEY, Invocation
from mcp_stateless.methods import answer, completed
from mcp_stateless.oauth import metadata_paths
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol import envelope, inbound, sse
from mcp_stateless.protocol.envelope import Notification, Response
from mcp_stateless.protocol.inbound import Accepted, Batch, Call, Refused
from mcp_stateless.protocol.media import JSON, accepts, is_json
from mcp_stateless.protocol.revisions import ASSUMED, Wire
from mcp_stateless.protocol.sealing import Rejected
from mcp_stateless.registry import Registry
from mcp_stateless.results import failure

StartHook: TypeAlias = Callable[[], object]

MAX_HEADER_BYTES: Final = 32 * 1024
"""Names and values together. API Gateway's own quota is 10,240 bytes, an ALB's 64 KB."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Incoming:
    """What is known of a request beside its body."""

    headers: Mapping[str, str]
    invocation: Invocation
    principal: Principal = ANONYMOUS


class Endpoint:
    """The MCP endpoint, its metadata and the health path of one server, as an ASGI application."""

    def __init__(
        self, registry: Registry, environment: Environment, access: Access, start_hooks: Sequence[StartHook] = ()
    ) -> None:
        self._registry = registry
        self._environment = environment
        self._settings = environment.settings
        self._access = access
        self._cors = Cors(environment.settings.allowed_origins)
        self._start_hooks = start_hooks
        self._starting: asyncio.Future[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route by path; what `http.py` leaves to FastAPI's router."""
        if scope["type"] == "lifespan":
            return await lifespan(receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        if path == self._settings.path:
            await self.serve(scope, receive, send)
        elif path == self._settings.health_path:
            await self.health(scope, receive, send)
        elif path in metadata_paths(self._settings.path):
            await self.metadata(scope, receive, send)
        else:
            await send_reply(Reply(404), send)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The MCP endpoint, whatever path it is mounted at."""
        headers, invocation = headers_of(scope), scope.get(SCOPE_KEY, LOCAL)
        try:
            reply = await self._admitted(scope, headers, invocation, receive)
        except ProtocolError as error:
            reply = refusal(Refused(error, status=500))
        except Exception:  # The boundary to HTTP: nothing may leave as a traceback or as text that is not JSON-RPC.
            log.exception("the request failed")
            reply = refusal(Refused(InternalError("Internal error"), status=500))
        await send_reply(reply, send, self._cors.response_headers(headers.get("origin")))

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Up, and which server; no start-up hook, store or token is involved."""
        card = {"status": "ok", **self._registry.implementation.to_wire()}
        body = envelope.encode({key: card[key] for key in ("status", "name", "version")})
        await self._document(body, scope, send)

    async def metadata(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Protected resource metadata (RFC 9728), for clients that have to log in first, pages among them."""
        places = sorted(metadata_paths(self._settings.path), key=len, reverse=True)
        try:
            document = self._access.metadata(scope.get(SCOPE_KEY, LOCAL), _prefix(scope, *places))
        except ConfigurationError as error:
            log.error("there is no metadata: %s", error)
            return await send_reply(refusal(Refused(InternalError("Internal error"), status=500)), send)
        if document is None:
            return await send_reply(Reply(404), send)
        await self._document(envelope.encode(document), scope, send)

    async def started(self) -> None:
        """Run the start-up hooks, once per process: the first request runs them, requests at the same time wait."""
        if not self._start_hooks:
            return
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.ensure_future(self._run_start_hooks())
        await asyncio.shield(self._starting)

    async def _document(self, body: bytes, scope: Scope, send: Send) -> None:
        cors = self._cors.response_headers(headers_of(scope).get("origin"))
        if scope["method"] == "OPTIONS":
            await send_reply(Reply(204, headers=self._cors.preflight_headers(headers_of(scope))), send, cors)
        elif scope["method"] in ("GET", "HEAD"):
            await send_reply(Reply(200, b"" if scope["method"] == "HEAD" else body), send, cors)
        else:
            await send_reply(Reply(405, headers={"allow": "GET, HEAD, OPTIONS"}), send, cors)

    async def _admitted(
        self, scope: Scope, headers: Mapping[str, str], invocation: Invocation, receive: Receive
    ) -> Reply:
        try:
            return await self._reply(scope, headers, invocation, receive)
        except (Unauthorized, InsufficientScope) as error:
            return self._turned_away(error, scope, invocation)

    async def _reply(self, scope: Scope, headers: Mapping[str, str], invocation: Invocation, receive: Receive) -> Reply:
        """The order of checks: preflight, origin, method, caller, then what costs reading."""
        if scope["method"] == "OPTIONS":
            return Reply(204, headers=self._cors.preflight_headers(headers))
        if not self._cors.allows(headers.get("origin")):
            return refusal(Refused(InvalidRequest("Forbidden: the origin is not allowed"), status=403))
        is_poll = scope["method"] == "GET" and self._is_poll(headers)
        if scope["method"] != "POST" and not is_poll:
            return Reply(405, headers={"allow": "POST, OPTIONS"})
        prefix = _prefix(scope, self._settings.path)
        incoming = Incoming(headers, invocation, await self._access.principal(headers, invocation, prefix))
        if is_poll:
            return await self._polled(incoming)
        if refused := _unfit(scope, headers):
            return refusal(refused)
        limit = min(self._settings.max_request_bytes, invocation.max_request_bytes)
        body = await read_body(headers, receive, limit)
        if body is None:
            error = InvalidRequest(f"Payload too large: the body may have {limit} bytes")
            return refusal(Refused(error, status=413))
        await self.started()
        return await self._post(body, incoming)

    async def _post(self, body: bytes, incoming: Incoming) -> Reply:
        try:
            value = envelope.decode(body)
        except ProtocolError as error:
            return refusal(Refused(error))
        match inbound.route(value, incoming.headers, self._settings.revisions):
            case Call() as call:
                return await self._single(call, incoming)
            case Batch(calls):
                return await self._batch(calls, incoming)
            case Refused() as refused:
                return refusal(refused)
            case Accepted(message):
                await self._take_note(message, incoming)
                return Reply(202)

    async def _single(self, call: Call, incoming: Incoming) -> Reply:
        exchange = self._exchange(call, incoming)
        message, status = await self._message(exchange)
        if exchange.stream is not None:
            return Reply(200, exchange.stream, sse.CONTENT_TYPE)
        notifications = exchange.collector.messages
        takes_json, takes_sse = accepts(incoming.headers.get("accept"))
        if takes_sse and (not takes_json or (notifications and not self._settings.json_response)):
            events = [envelope.encode(item) for item in (*notifications, message)]
            body = sse.finished(events)
            if len(events[-1]) <= self._settings.max_event_bytes and fits(body, incoming.invocation):
                return Reply(status, body, sse.CONTENT_TYPE, exchange.reply_headers)
        body = envelope.encode(message)
        if not fits(body, incoming.invocation):
            return self._too_large(exchange)
        return Reply(status, body, headers=exchange.reply_headers)

    async def _batch(self, calls: Sequence[Call], incoming: Incoming) -> Reply:
        """The answers share one body: none of them can be a stream of its own.

        And they share a status: a scope that one of them lacks has to be missed before another one has run.
        """
        tools = self._registry.seen_by(incoming.principal).tools
        for call in calls:
            name = call.params.get("name")
            if call.method == "tools/call" and isinstance(name, str) and name in tools:
                check_scopes(incoming.principal, tools[name].scopes, self._environment.grants)
        plain = Incoming({**incoming.headers, "accept": JSON}, incoming.invocation, incoming.principal)
        answers = [self._message(self._exchange(call, plain)) for call in calls]
        body = envelope.encode([message for message, _ in await asyncio.gather(*answers)])
        if fits(body, incoming.invocation):
            return Reply(200, body)
        error = InternalError(_size_text("The batch's result", incoming.invocation))
        return Reply(200, envelope.encode(envelope.error_message(None, error)))

    async def _message(self, exchange: Exchange) -> tuple[Wire, int]:
        call = exchange.call
        try:
            return envelope.result_message(call.id, await answer(self._registry, exchange)), 200
        except ProtocolError as error:
            code = inbound.code_of(error, call.revision)
            return envelope.error_message(call.id, error, code), inbound.status_of(error, call.revision)

    def _exchange(self, call: Call, incoming: Incoming) -> Exchange:
        return Exchange(call, self._environment, Headers(incoming.headers), incoming.invocation, incoming.principal)

    def _is_poll(self, headers: Mapping[str, str]) -> bool:
        """A GET that asks for what became of a call. Without an id it asks for a stream that nobody can hold."""
        has_id = self._environment.desk is not None and bool(headers.get("last-event-id"))
        return has_id and not inbound.names_modern(headers)

    async def _polled(self, incoming: Incoming) -> Reply:
        desk, invocation = self._environment.desk, incoming.invocation
        assert desk is not None, "without a desk a GET is no poll"
        event_id, hold_s = incoming.headers["last-event-id"], invocation.time_for(self._settings.hold_seconds)
        try:
            body = await polled.poll(desk, event_id, incoming.principal, hold_s, lambda body: fits(body, invocation))
        except Rejected as reason:
            log.warning("an event id was refused: %s", reason)
            return refusal(Refused(InvalidRequest("Invalid Last-Event-ID")))
        if body is None:
            return Reply(405, headers={"allow": "POST, OPTIONS"})
        return Reply(200, body, sse.CONTENT_TYPE)

    async def _take_note(self, message: Notification | Response | None, incoming: Incoming) -> None:
        """What an accepted message leads to. A cancellation counts only from the client that made the call."""
        desk = self._environment.desk
        if desk is None or message is None:
            return
        if isinstance(message, Response):
            if message.id is not None:
                await polled.take_answer(desk, message.id, message.outcome, incoming.principal)
            return
        rpc_id = message.params.get("requestId")
        if message.method == "notifications/cancelled" and envelope.is_id(rpc_id):
            client = self._exchange(Call(0, message.method, message.params, ASSUMED), incoming).client
            if client is not None:
                await desk.cancel(client.call_id(rpc_id))

    def _turned_away(self, error: Unauthorized | InsufficientScope, scope: Scope, invocation: Invocation) -> Reply:
        log.warning("a request was turned away: %s", error)
        is_known = isinstance(error, InsufficientScope)
        refused = Refused(InvalidRequest(FORBIDDEN if is_known else UNAUTHORIZED), status=403 if is_known else 401)
        return refusal(refused, self._access.challenge(error, invocation, _prefix(scope, self._settings.path)))

    def _too_large(self, exchange: Exchange) -> Reply:
        """The answer in place of one that the platform would refuse to carry; always HTTP 200, so that it is read."""
        call = exchange.call
        if call.method != "tools/call":
            error = InternalError(_size_text(f"The result of {call.method}", exchange.invocation))
            return Reply(200, envelope.encode(envelope.error_message(call.id, error)))
        text = _size_text(f"The result of {call.params['name']}", exchange.invocation)
        result = failure(f"{text}. Ask for less, or for a part of it.")
        if call.revision.modern:
            result = completed(self._registry, exchange, result)
        return Reply(200, envelope.encode(envelope.result_message(call.id, result)))

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


def _prefix(scope: Scope, *places: str) -> str:
    """What the public path has in front of the server's own: a stage, a base path, or the prefix of a router."""
    path: str = scope["path"].rstrip("/")
    return next((path.removesuffix(place) for place in places if path.endswith(place)), "")


def _size_text(what: str, invocation: Invocation) -> str:
    return f"{what} is too large: a reply may have {invocation.max_response_bytes} bytes, encoded for Lambda"
