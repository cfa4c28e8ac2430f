"""A deployment whose parts are all at hand: servers that share a store and a clock, and a queue of work.

Nothing works by itself: what was launched lies in the queue until `work()`. Each request and each piece of work reaches
another server than the one before it.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from mcp_stateless import MCPServer, Settings
from mcp_stateless.calls.desk import CallDesk
from mcp_stateless.calls.launch import WORK_KEY, LaunchFailed
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore, StoreUnavailable
from mcp_stateless.calls.worker import Worker
from mcp_stateless.protocol.sealing import KeyRing
from mcp_stateless.registry import Registry
from mcp_stateless.testing import lambda_context
from tests.http.door import Answer, Door, Handler, JsonObject, initialize

KEY: Final = "a signing key that all servers of this deployment have"
RING: Final = KeyRing((KEY.encode(),))
TASKS: Final[JsonObject] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
FORMS: Final[JsonObject] = {"elicitation": {"form": {}}}
START: Final = 1_900_000_000.0
WORK_MS: Final = 900_000
PYTHON: Final = "python-client/1"

Offer = Callable[[MCPServer], object]


class Killed(BaseException):
    """The process of a worker is gone. Not an `Exception`: nothing in it may go on."""


@dataclass(slots=True)
class Clock:
    """Seconds since the epoch; stands still unless a test moves it."""

    now: float = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass(slots=True)
class Queue:
    """A launcher that keeps what was launched; `launched` has all of it, `waiting` what nobody worked on yet."""

    launched: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    fails: bool = False
    loses: bool = False

    async def launch(self, call_id: str) -> None:
        if self.fails:
            raise LaunchFailed("the queue is closed")
        self.launched.append(call_id)
        if not self.loses:
            self.waiting.append(call_id)


class Unreadable(MemoryCallStore):
    """A store that answers no question while it is `down`."""

    down = False

    async def read(self, call_id: str, after: int, now_ms: int) -> Any:
        if self.down:
            raise StoreUnavailable("throttled")
        return await super().read(call_id, after, now_ms)


class Deployment:
    """Two servers for HTTP and two for work, made by `offer`; `worker_store`: what the servers for work see."""

    def __init__(
        self,
        offer: Offer,
        store: CallStore,
        *,
        worker_store: CallStore | None = None,
        source: str = "http_api",
        **settings: object,
    ) -> None:
        self.clock, self.queue, self.store = Clock(), Queue(), store
        self.desk: CallDesk
        given = {"signing_keys": (KEY,), "polling": "memory", "round_hold_s": 0, "flush_interval_ms": 1, **settings}
        self.settings = Settings.model_validate(given)
        self._worker_store = worker_store or store
        self.deploy(offer)
        self.door = Door(lambda event, context: next(self._servers)(event, context), source)

    def deploy(self, offer: Offer, version: str = "1") -> None:
        """Have all servers made anew, by another `offer` perhaps."""
        self._workers = itertools.cycle([self._handler(offer, self._worker_store, version) for _ in range(2)])
        self._servers = itertools.cycle([self._handler(offer, self.store, version) for _ in range(2)])

    def _handler(self, offer: Offer, store: CallStore, version: str) -> Handler:
        def set_up(
            registry: Registry, settings: Settings, keys: object, clock: Clock, new_id: Callable[[], str]
        ) -> tuple[Worker, CallDesk]:
            self.desk = CallDesk(store, self.queue, RING, settings, clock, new_id)
            return Worker(registry, settings, store, clock), self.desk

        # There is no setting for a store or a launcher of one's own.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mcp_stateless.server.set_up", set_up)
            server = MCPServer("deployed", version, settings=self.settings, clock=self.clock)
        offer(server)
        handler: Handler = server.lambda_handler()
        return handler

    def work(self) -> int:
        """Do everything that is queued, and what is queued by that; returns how many invocations it took."""
        for count in itertools.count():
            if not self.queue.waiting:
                return count
            assert count < 50, "the work does not come to an end"
            next(self._workers)({WORK_KEY: self.queue.waiting.pop(0)}, lambda_context(WORK_MS))
        raise AssertionError("counting has no end")

    def fail_work(self) -> None:
        """Tell, as Lambda does, that the next piece of work came to nothing."""
        event = {"requestPayload": {WORK_KEY: self.queue.waiting.pop(0)}}
        next(self._servers)(event, lambda_context(WORK_MS))

    def call(
        self,
        name: str = "tool",
        arguments: JsonObject | None = None,
        *,
        capabilities: JsonObject | None = None,
        meta: JsonObject | None = None,
        **params: object,
    ) -> Answer:
        """A `tools/call` at 2026-07-28; by default it can be asked and declares tasks."""
        declared = TASKS | FORMS if capabilities is None else capabilities
        full = {"name": name, "arguments": arguments or {}, **params}
        return self.door.modern("tools/call", full, capabilities=declared, meta=meta)

    def start(self, name: str = "tool", arguments: JsonObject | None = None) -> str:
        """Call a tool that becomes a task; returns the task's id."""
        created = self.call(name, arguments).result
        assert created["resultType"] == "task", created
        task_id: str = created["taskId"]
        return task_id

    def task(self, method: str, task_id: object, *, capabilities: JsonObject = TASKS, **params: object) -> Answer:
        """`tasks/get`, `tasks/update` or `tasks/cancel`."""
        full = {"taskId": task_id, **params}
        headers = {"mcp-name": task_id} if isinstance(task_id, str) else {}
        return self.door.modern(f"tasks/{method}", full, capabilities=capabilities, headers=headers)

    def get(self, task_id: str) -> JsonObject:
        return self.task("get", task_id).result

    def answer(self, task_id: str, **answers: object) -> JsonObject:
        return self.task("update", task_id, inputResponses=answers).result


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    id: str | None
    retry: int | None
    message: JsonObject | None


class LegacyClient:
    """A client at 2025-11-25 that polls; it brings the token that its handshake gave it."""

    def __init__(self, deployment: Deployment, capabilities: JsonObject | None = None) -> None:
        self._door = deployment.door
        self._ids = itertools.count(1)
        params = {**initialize("2025-11-25"), "capabilities": FORMS if capabilities is None else capabilities}
        shaken = self._door.legacy("initialize", params, request_id=0)
        token = shaken.headers.get("mcp-session-id")
        self.headers = {"user-agent": PYTHON} | ({"mcp-session-id": token} if token else {})

    def call(
        self, name: str = "tool", arguments: JsonObject | None = None, meta: JsonObject | None = None, **options: Any
    ) -> Answer:
        params = {"name": name, "arguments": arguments or {}} | ({} if meta is None else {"_meta": meta})
        given = {"request_id": next(self._ids), **options}
        return self._door.legacy("tools/call", params, headers=self.headers, **given)

    def poll(self, event_id: str) -> Answer:
        fields = {"accept": "text/event-stream", "mcp-protocol-version": "2025-11-25", "last-event-id": event_id}
        return self._door.send("GET", headers=fields | self.headers)

    def post(self, message: JsonObject) -> Answer:
        return self._door.post(message, {"mcp-protocol-version": "2025-11-25", **self.headers})

    def respond(self, request: Mapping[str, Any], result: JsonObject) -> None:
        """Answer a request of the server's."""
        answered = self.post({"jsonrpc": "2.0", "id": request["id"], "result": result})
        assert (answered.status, answered.body) == (202, b"")


def events(answer: Answer) -> list[Event]:
    """The events of a stream that was answered with 200."""
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "text/event-stream", answer
    return [_event(block) for block in answer.body.decode().split("\n\n") if block.strip()]


def last_id(answer: Answer) -> str:
    return [event.id for event in events(answer) if event.id is not None][-1]


def messages(answer: Answer) -> Iterator[JsonObject]:
    return (event.message for event in events(answer) if event.message is not None)


def requests(answer: Answer) -> list[JsonObject]:
    """What the server asks in a stream."""
    return [message for message in messages(answer) if "id" in message and "method" in message]


def response(answer: Answer) -> JsonObject | None:
    """The response of the call, if it is in the stream."""
    return next((message for message in messages(answer) if "result" in message or "error" in message), None)


def progress(answer: Answer) -> list[float]:
    found = [message for message in messages(answer) if message.get("method") == "notifications/progress"]
    return [message["params"]["progress"] for message in found]


def accept(**content: object) -> JsonObject:
    return {"action": "accept", "content": content}


def text_of(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def tool(fn: Callable[..., Any], **options: Any) -> Offer:
    """A server of one tool, named `tool`, that is long unless the options say otherwise."""
    given = {"long_running": True, **options}
    return lambda server: server.tool("tool", description="Work.", **given)(fn)


def _event(block: str) -> Event:
    fields: dict[str, str] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        fields[name] = value.removeprefix(" ")
    data, retry = fields.get("data"), fields.get("retry")
    return Event(fields.get("id"), int(retry) if retry else None, json.loads(data) if data else None)
