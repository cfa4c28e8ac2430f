"""One server with long calls behind Lambda events; its clock, its queue of work events and its store are the test's."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from mcp_stateless import MCPServer, Settings
from mcp_stateless.access import set_up_access
from mcp_stateless.aws import LambdaHandler
from mcp_stateless.calls.desk import CallDesk
from mcp_stateless.calls.launch import WORK_KEY, LaunchFailed
from mcp_stateless.calls.record import CallRecord, Move
from mcp_stateless.calls.store import CallStore, Snapshot
from mcp_stateless.calls.worker import Worker
from mcp_stateless.endpoint import Endpoint
from mcp_stateless.exchange import Environment, random_id
from mcp_stateless.identity import has_scope
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import KeyRing
from mcp_stateless.testing import lambda_context
from mcp_stateless.work_events import work_rows
from tests.http.door import Answer, Door, JsonObject, request
from tests.polling.streams import Stream, stream

KEY: Final = "a signing key of thirty-two bytes"
POLLER: Final = "2025-11-25"
SECONDS: Final = 10
"""How long anything may take that waits for something else."""

T = TypeVar("T")


class Clock:
    """Seconds since the epoch, as far as the server knows."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass(slots=True)
class Queue:
    """A launcher that keeps the work events until the test delivers them, loses them, or delivers them twice."""

    call_ids: list[str] = field(default_factory=list)
    is_down: bool = False

    async def launch(self, call_id: str) -> None:
        if self.is_down:
            raise LaunchFailed("the queue is down")
        self.call_ids.append(call_id)

    def take(self) -> str:
        """The call that was launched longest ago."""
        return self.call_ids.pop(0)


class WatchedStore:
    """A store that notes what is asked of the one behind it: a method, or the kind of a move."""

    def __init__(self, store: CallStore) -> None:
        self.asked: list[str] = []
        self.created: list[str] = []
        """Ids of the calls that were taken in."""
        self.batches = 0
        """Log batches that were written."""
        self.before: Callable[[str], None] = lambda asked: None
        """Called first; what it raises is what the store raises."""
        self.slow: tuple[str, ...] = ()
        """What the store takes its time for."""
        self._store = store

    async def create(self, record: CallRecord) -> None:
        await self._note("create")
        await self._store.create(record)
        self.created.append(record.call_id)

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        await self._note(type(move).__name__)
        return await self._store.apply(call_id, move, now_ms)

    async def append(self, call_id: str, attempt: int, number: int, messages: Sequence[Wire]) -> None:
        await self._note("append")
        await self._store.append(call_id, attempt, number, messages)
        self.batches += 1

    async def read(self, call_id: str, after: int, now_ms: int) -> Snapshot | None:
        await self._note("read")
        return await self._store.read(call_id, after, now_ms)

    async def admit(self, caller: str, call_id: str, until_ms: int, most: int, now_ms: int) -> bool:
        await self._note("admit")
        return await self._store.admit(caller, call_id, until_ms, most, now_ms)

    async def leave(self, caller: str, call_id: str) -> None:
        await self._note("leave")
        await self._store.leave(caller, call_id)

    async def _note(self, asked: str) -> None:
        self.asked.append(asked)
        self.before(asked)
        if asked in self.slow:
            await asyncio.sleep(0.05)


class World:
    """A deployment: environments that serve HTTP in turn, one that works, and what lies between them."""

    def __init__(self, store: CallStore, **settings: object) -> None:
        self.clock = Clock()
        self.queue = Queue()
        self.store = WatchedStore(store)
        self.keys = KeyRing((KEY.encode(),))
        self.settings = Settings.model_validate({"signing_keys": (KEY,), **settings})
        self.server = MCPServer("polling", "1", settings=self.settings)
        # Put together as `MCPServer` does it for `MCP_POLLING`, but from the parts above.
        self.worker = Worker(self.server.registry, self.settings, self.store, self.clock)
        self.desk = CallDesk(self.store, self.queue, self.keys, self.settings, self.clock, random_id)
        environment = Environment(self.settings, self.keys, self.clock, random_id, self.desk)
        access = set_up_access(self.settings, None, has_scope)
        self._endpoint = Endpoint(self.server.registry, environment, access)
        self._worker_handler = self.handler()
        fronts = itertools.cycle([self.handler(), self.handler()])
        self.door = Door(lambda event, context: next(fronts)(event, context))
        self._ids = itertools.count(1)

    def handler(self) -> LambdaHandler:
        """Another execution environment."""
        rows = work_rows(self.worker, self.desk, self._endpoint)
        return LambdaHandler(self._endpoint, self.settings, rows=rows)

    def tool(self, fn: Callable[..., Any], name: str = "long", **options: Any) -> None:
        self.server.tool(name, description="Take long.", **{"long_running": True, **options})(fn)

    def post(
        self,
        arguments: JsonObject | None = None,
        *,
        name: str = "long",
        token: str | int | None = None,
        request_id: Any = None,
        version: str | None = POLLER,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answer:
        """A `tools/call`, whatever it is answered with."""
        params: JsonObject = {"name": name, "arguments": arguments or {}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        message = request("tools/call", params, next(self._ids) if request_id is None else request_id)
        return self.door.post(message, {"mcp-protocol-version": version, **(headers or {})})

    def start(self, arguments: JsonObject | None = None, **options: Any) -> Stream:
        """A call that is answered with the beginning of its stream."""
        return stream(self.post(arguments, **options))

    def get(self, last_event_id: str | None, version: str | None = POLLER, **headers: str) -> Answer:
        fields = {"accept": "text/event-stream", "mcp-protocol-version": version, "last-event-id": last_event_id}
        given = {name: value for name, value in fields.items() if value is not None}
        return self.door.send("GET", headers=given | headers)

    def poll(self, last_event_id: str, **headers: str) -> Stream:
        return stream(self.get(last_event_id, **headers))

    def work(self, call_id: str | None = None, context_ms: int = 900_000) -> JsonObject:
        """Deliver a work event: the next one of the queue, or one of a call at will."""
        event = {WORK_KEY: self.queue.take() if call_id is None else call_id}
        return self._worker_handler(event, lambda_context(context_ms))

    def report_failure(self, call_id: str, condition: str = "RetriesExhausted") -> JsonObject:
        """Deliver what Lambda sends to the OnFailure destination of a work event."""
        event = {
            "version": "1.0",
            "requestContext": {"condition": condition, "approximateInvokeCount": 1},
            "requestPayload": {WORK_KEY: call_id},
        }
        return self._worker_handler(event, lambda_context(30_000))

    def read(self, call_id: str) -> CallRecord:
        """The record as it lies in the store."""
        snapshot = ran(self.store.read(call_id, 0, self.now_ms()))
        assert snapshot is not None
        return snapshot.record

    def write(self, *writes: Coroutine[Any, Any, Any]) -> None:
        """Write to the store as a worker in another process does."""
        for each in writes:
            ran(each)

    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    async def until_asked(self, what: str, times: int = 1) -> None:
        """Wait until the store was asked something so many times; for tools, whose worker writes beside them."""
        async with asyncio.timeout(SECONDS):
            while self.store.asked.count(what) < times:
                await asyncio.sleep(0.001)

    async def until_written(self, batches: int) -> None:
        """Wait until the store has so many log batches, and a poll can find them."""
        async with asyncio.timeout(SECONDS):
            while self.store.batches < batches:
                await asyncio.sleep(0.001)


def ran(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)
