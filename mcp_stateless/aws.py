"""The Lambda entry: one callable `(event, context)` that tells the kinds of events apart and always returns a dict.

Owns the event loop of the execution environment, the time limit of an invocation and the last word on every answer: no
exception leaves it, nothing of a request runs on after its reply. HTTP goes through Mangum to a plain ASGI application,
with an `Invocation` in its scope; what MCP is, it does not know.
"""

import asyncio
import contextvars
import json
import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, cast

from mangum import Mangum
from mangum.types import LambdaContext, Message, Receive, Scope, Send

from mcp_stateless import sources
from mcp_stateless.errors import InternalError
from mcp_stateless.invocation import SCOPE_KEY, Invocation
from mcp_stateless.settings import Settings

logger = logging.getLogger(__name__)

Result = dict[str, Any]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

TEXT_TYPES: Final = ["text/", "application/json", "+json", "application/javascript", "application/xml", "+xml"]
"""Parts of content types whose bodies go out as text; everything else is base64, as the sources want binary bodies."""
LEFTOVER_GRACE_SECONDS: Final = 0.1
"""How long tasks that outlive the reply may take to end, and then again to take their cancellation."""

_serving: contextvars.ContextVar[object] = contextvars.ContextVar("mcp_stateless.serving", default=None)


@dataclass(frozen=True, slots=True)
class EventRow:
    """A kind of event, other than HTTP, that a function serves."""

    name: str
    matches: Callable[[object], bool]
    answer: Callable[[Any, object], Awaitable[Result]]
    """Gets event and context; runs on the environment's loop. What it raises is logged and answered for it."""
    is_asynchronous: bool = False
    """Nobody reads the answer: what it raises is raised, so that Lambda sees a failed invocation and says so."""


class EventFailed(Exception):
    """An asynchronous event could not be served; the reason is logged."""


class LambdaHandler:
    """The handler of a function: give it to Lambda as `module.attribute`, or call it in a test.

    One event at a time, like an execution environment: calls from several threads wait for each other. It works from
    any thread, with or without a current event loop, and from inside a running one.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        *,
        rows: Sequence[EventRow] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Serve HTTP events with `app`, and other kinds of events with `rows`, which are asked first."""
        self._app = app
        self._settings = settings
        self._rows = tuple(rows)
        self._clock = clock
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        # Stands for this handler in contexts, which the loop may keep: it must not keep the handler, which ends it.
        self._token = object()

    def __call__(self, event: object, context: object = None) -> Result:
        """Answer one event. Raises nothing but `EventFailed`, and that for asynchronous events only."""
        if _serving.get() is self._token:
            # Waiting for ourselves would hang until the function's timeout.
            logger.error("A request of this handler called the handler again; give the caller a handler of its own")
            return _internal_error(event)
        return (self._answer_in_thread if _loop_is_running() else self._answer)(event, context)

    def _answer_in_thread(self, event: object, context: object) -> Result:
        """A thread that runs a loop cannot run ours: an async test, or a tool that calls another server in process."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(contextvars.copy_context().run, self._answer, event, context).result()

    def _answer(self, event: object, context: object) -> Result:
        with self._lock:
            token = _serving.set(self._token)
            try:
                return self._dispatch(event, context)
            except EventFailed:
                raise
            except BaseException:  # the outermost boundary: an environment that died answers nobody
                logger.exception("The invocation failed")
                return _internal_error(event)
            finally:
                _serving.reset(token)

    def _dispatch(self, event: object, context: object) -> Result:
        row = next((row for row in self._rows if row.matches(event)), None)
        if row is not None:
            return self._answer_row(row, event, context)
        source = sources.recognise(event)
        if source is not None:
            return self._answer_http(source, cast(sources.Event, event), context)
        quiet = next((name for name, matches in QUIET_EVENTS if matches(event)), None)
        if quiet is None:
            logger.error("The event is none that this function serves: it is %s", _describe(event))
        return {"ignored": quiet or "unknown event"}

    def _answer_row(self, row: EventRow, event: object, context: object) -> Result:
        try:
            return self._run(lambda loop: loop.run_until_complete(_awaited(row.answer(event, context))))
        except Exception as error:
            if not row.is_asynchronous:
                raise
            logger.exception("An event of the kind %s failed", row.name)
            raise EventFailed(row.name) from error

    def _answer_http(self, source: sources.Source, event: sources.Event, context: object) -> Result:
        request = sources.normalise(source, event, self._settings.base_path)
        if isinstance(request, sources.Refusal):
            logger.warning("An event of %s was refused: %s", source.name, request.message)
            return _error_result(event, request.status, request.code, request.message)
        invocation, seconds = self._invocation(source, event, context)
        exchange = _Exchange(self._app, request, invocation, seconds)

        def serve(_: asyncio.AbstractEventLoop) -> Result:
            adapter = Mangum(exchange, lifespan="off", text_mime_types=TEXT_TYPES)
            return adapter(request.event, cast(LambdaContext, context))  # only handed on, into the scope

        return _within_limit(exchange.finish(self._run(serve)), event, source.max_response_bytes)

    def _invocation(
        self, source: sources.Source, event: sources.Event, context: object
    ) -> tuple[Invocation, float | None]:
        """The limits of one request, and the seconds after which the application is stopped, whatever it does."""
        settings = self._settings
        limit_ms, sentence = sources.time_limit(source, _remaining_ms(context), settings.gateway_timeout_ms)
        deadline, seconds = None, None
        if limit_ms is not None:
            # Half of what there is, where the whole margin would leave nothing.
            margin_ms = min(settings.deadline_margin_ms, limit_ms / 2)
            deadline = self._clock() + (limit_ms - margin_ms) / 1000
            seconds = (limit_ms - margin_ms / 2) / 1000
        invocation = Invocation(
            source=source.name,
            max_request_bytes=min(source.max_request_bytes, settings.max_request_bytes),
            max_response_bytes=source.max_response_bytes,
            deadline=deadline,
            limit=sentence,
            event=event,
            context=context,
        )
        return invocation, seconds

    def _run(self, serve: Callable[[asyncio.AbstractEventLoop], Result]) -> Result:
        """Do something on the environment's loop, and leave nothing of it behind there."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            weakref.finalize(self, self._loop.close)
        asyncio.set_event_loop(self._loop)
        before = asyncio.all_tasks(self._loop)
        try:
            return serve(self._loop)
        finally:
            leftovers = asyncio.all_tasks(self._loop) - before
            if leftovers:
                self._loop.run_until_complete(_end(leftovers))


class _Exchange:
    """One request to the application: an ASGI application itself, with Mangum in front.

    It collects the reply before Mangum sees any of it, so that an application that fails half-way, answers nothing or
    never ends still yields one well-formed answer.
    """

    def __init__(
        self, app: ASGIApp, request: sources.HttpRequest, invocation: Invocation, seconds: float | None
    ) -> None:
        self._app = app
        self._request = request
        self._invocation = invocation
        self._seconds = seconds
        self._answered = asyncio.Event()
        self._status: int | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._sent: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self._request
        scope.update(
            {
                SCOPE_KEY: self._invocation,
                "aws.event": self._invocation.event,
                "path": request.path,
                "root_path": request.prefix,
                "headers": list(request.headers),
                "scheme": request.scheme,
                "server": request.server,
                "client": (request.client, 0) if request.client else None,
            }
        )
        await self._ask(scope, receive)
        await send({"type": "http.response.start", "status": self._status, "headers": self._reply_headers()})
        await send({"type": "http.response.body", "body": bytes(self._body)})

    def finish(self, result: Result) -> Result:
        """Take back the content type that Mangum adds to a version 2 reply without a body."""
        if not self._body and "content-type" not in self._sent:
            result.get("headers", {}).pop("content-type", None)
        return result

    async def _ask(self, scope: Scope, receive: Receive) -> None:
        first = await receive()
        requests: list[Message] = [first]

        async def next_message() -> Message:
            if requests:
                return requests.pop()
            await self._answered.wait()
            return {"type": "http.disconnect"}

        message = "Internal error"
        try:
            async with asyncio.timeout(self._seconds) as limit:
                await self._app(scope, next_message, self._collect)
        except BaseException:  # the application boundary: whatever it raises, SystemExit included, is one answer
            if limit.expired():
                message = f"The request was stopped: {self._invocation.limit}"
                logger.error("The application did not answer in time: %s", self._invocation.limit)
            else:
                logger.exception("The application failed")
        else:
            if not self._answered.is_set():
                logger.error("The application returned without a whole answer")
        if not self._answered.is_set():
            self._status, self._headers = 500, [(b"content-type", b"application/json")]
            self._body[:] = _error_body(InternalError.code, message).encode()

    async def _collect(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._status is None:
            self._status = int(message["status"])
            self._headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        elif message["type"] == "http.response.body" and self._status is not None and not self._answered.is_set():
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                self._answered.set()
        else:
            raise RuntimeError(f"{message['type']} is not what the response needs next")

    def _reply_headers(self) -> list[tuple[bytes, bytes]]:
        """Each header once, in UTF-8; cookies as they are; no type for a body that is not there."""
        cookies = []
        for raw_name, raw_value in self._headers:
            name, value = raw_name.decode("latin-1").lower(), _utf8(raw_value)
            if name == "set-cookie":
                cookies.append((b"set-cookie", value))
            elif name == "content-type" and not self._body and self._request.method != "HEAD":
                continue
            else:
                self._sent[name] = self._sent[name] + b", " + value if name in self._sent else value
        return [(name.encode(), value) for name, value in self._sent.items()] + cookies


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _awaited(answer: Awaitable[Result]) -> Result:
    return await answer


async def _end(leftovers: set[asyncio.Task[Any]]) -> None:
    """Let tasks that outlive the reply end, or cancel them: a frozen task would go on in somebody else's request."""
    _, running = await asyncio.wait(leftovers, timeout=LEFTOVER_GRACE_SECONDS)
    if running:
        names = ", ".join(sorted(getattr(task.get_coro(), "__qualname__", task.get_name()) for task in running))
        logger.warning(
            "Work went on after the reply and was cancelled: %s. Await it, or start it as an invocation of its own",
            names,
        )
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=LEFTOVER_GRACE_SECONDS)
    for task in leftovers:
        # What is no `Exception` stopped the task on purpose: a question beside the one that ended the run.
        if task.done() and not task.cancelled() and isinstance(task.exception(), Exception):
            logger.error("Work that went on after the reply failed", exc_info=task.exception())


def _utf8(value: bytes) -> bytes:
    """Headers are Latin-1 in ASGI and text in a result: what is not UTF-8 already is translated."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1").encode()
    return value


def _remaining_ms(context: object) -> int | None:
    ask = getattr(context, "get_remaining_time_in_millis", None)
    remaining = ask() if callable(ask) else None
    return int(remaining) if isinstance(remaining, int | float) else None


def _within_limit(result: Result, event: object, limit: int) -> Result:
    """The net under every route: a result that the source would throw away becomes an error that says why."""
    # A character takes at most six bytes; most results are far below and never measured.
    if len(result["body"]) * 6 + 65_536 < limit or (size := encoded_size(result)) <= limit:
        return result
    logger.error("A result of %d bytes was replaced by an error: the limit is %d bytes", size, limit)
    message = f"The response is too large: {size} bytes, and at most {limit} bytes can be sent"
    return _error_result(event, 500, InternalError.code, message)


def encoded_size(result: Mapping[str, object]) -> int:
    """Bytes of a result as the runtime encodes it; only runtimes before Python 3.12 escape what is not ASCII."""
    escaped = os.environ.get("AWS_EXECUTION_ENV") == "AWS_Lambda_python3.11"
    return len(json.dumps(result, ensure_ascii=escaped).encode("utf-8", "surrogatepass"))


def _internal_error(event: object) -> Result:
    return _error_result(event, 500, InternalError.code, "Internal error")


def _error_result(event: object, status: int, code: int, message: str) -> Result:
    """A JSON-RPC error without an id, in the form that every source takes."""
    body = _error_body(code, message)
    result: Result = {"statusCode": status, "headers": {"content-type": "application/json"}, "body": body}
    if isinstance(event, Mapping) and isinstance(event.get("multiValueHeaders"), Mapping):
        # A target group with multi-value headers reads nothing else; a REST API reads both.
        result["multiValueHeaders"] = {"content-type": ["application/json"]}
    return result | {"isBase64Encoded": False}


def _error_body(code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "error": {"code": code, "message": message}})


def _is_empty(event: object) -> bool:
    return event is None or event == {} or event == ""


def _is_console_test(event: object) -> bool:
    return isinstance(event, Mapping) and all(re.fullmatch(r"key\d+", str(name)) for name in event)


def _comes_from(*names: str) -> Callable[[object], bool]:
    return lambda event: isinstance(event, Mapping) and event.get("source") in names


QUIET_EVENTS: Final[tuple[tuple[str, Callable[[object], bool]], ...]] = (
    ("empty event", _is_empty),
    ("warm-up event", _comes_from("serverless-plugin-warmup")),
    ("scheduled event", _comes_from("aws.events", "aws.scheduler")),
    ("console test event", _is_console_test),
)
"""Events that ask for nothing: they are answered with their name."""


def _describe(event: object) -> str:
    """Shape and keys of an event, never a value of it."""
    if not isinstance(event, Mapping):
        return f"a {type(event).__name__}"
    keys = ", ".join(repr(str(name)[:40]) for name in list(event)[:20])
    return f"a map with the keys {keys}" + (" and more" if len(event) > 20 else "")
