"""One tool with three questions and two steps, on every wire, whole and cut at every point: always the same result."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import pytest
from pydantic import BaseModel

from mcp_stateless import Context
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import CallRecord, Move, RecordStep, Report
from mcp_stateless.calls.store import CallStore, Snapshot
from mcp_stateless.protocol.revisions import Wire
from tests.http.door import JsonObject
from tests.tasks.deployment import (
    FORMS,
    TASKS,
    Deployment,
    Killed,
    LegacyClient,
    accept,
    last_id,
    progress,
    requests,
    response,
    text_of,
    tool,
)

ANSWERS: Final = {"Who?": {"name": "Ada"}, "Where?": {"name": "London"}, "When?": {"name": "1843"}}
EXPECTED: Final = "Ada London 1843, paid Ada, booked London"
TIMEOUT_S: Final = 60
MOST_WRITES: Final = 60
"""More than one call makes."""

When = Literal["before", "after"]


class Name(BaseModel):
    name: str


@dataclass(slots=True)
class Shop:
    """What the tool did outside: each step's effects, by the key that came with them."""

    effects: list[tuple[str, str]] = field(default_factory=list)
    seen: set[tuple[str, datetime, float]] = field(default_factory=set)

    async def buy(self, ctx: Context[None]) -> str:
        """Ask three things and do two."""
        self.seen.add((ctx.call_id, ctx.started_at, ctx.random.random()))
        who = await self._ask(ctx, 1, "Who?")
        paid = await ctx.step("pay", self._do("pay", f"paid {who}"))
        where = await self._ask(ctx, 2, "Where?")
        booked = await ctx.step("book", self._do("book", f"booked {where}"))
        when = await self._ask(ctx, 3, "When?")
        await ctx.report_progress(4, 4, "written down")
        await asyncio.sleep(0.004)  # long enough to be written down
        return f"{who} {where} {when}, {paid}, {booked}"

    async def _ask(self, ctx: Context[None], number: int, message: str) -> str:
        await ctx.report_progress(number, 4, message)
        await asyncio.sleep(0.004)
        answer = await ctx.elicit(message, Name)
        return answer.data.name if answer.action == "accept" else answer.action

    def _do(self, step: str, value: str) -> Callable[[str], str]:
        def effect(idempotency_key: str) -> str:
            self.effects.append((step, idempotency_key))
            return value

        return effect


class Cut:
    """A store as a worker has it that is killed at its n-th write, just before it or just after."""

    def __init__(self, store: CallStore, at: int, when: When) -> None:
        self._store, self._at, self._when = store, at, when
        self._writes = itertools.count(1)
        self.killed: Move | None = None
        """The write that was the last of its process."""
        self.is_dead = False
        self.reports: list[float] = []

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        if self.is_dead:
            raise Killed
        cut = self.killed is None and next(self._writes) == self._at
        if cut and self._when == "before":
            self._kill(move)
        record = await self._store.apply(call_id, move, now_ms)
        if isinstance(move, Report) and record.progress is not None:
            self.reports.append(record.progress.progress)
        if cut:
            self._kill(move)
        return record

    def _kill(self, move: Move) -> None:
        self.killed, self.is_dead = move, True
        raise Killed

    async def create(self, record: CallRecord) -> None:
        raise AssertionError("a worker makes no records")

    async def append(self, call_id: str, attempt: int, number: int, messages: Sequence[Wire]) -> None:
        await self._store.append(call_id, attempt, number, messages)

    async def read(self, call_id: str, after: int, now_ms: int) -> Snapshot | None:
        return await self._store.read(call_id, after, now_ms)

    async def admit(self, caller: str, call_id: str, until_ms: int, most: int, now_ms: int) -> bool:
        raise AssertionError("a worker takes no places")

    async def leave(self, caller: str, call_id: str) -> None:
        await self._store.leave(caller, call_id)


class Run:
    """One call of the tool on one wire, and what came of it."""

    def __init__(self, store: CallStore, *, at: int = 0, when: When = "before", long_running: Any = True) -> None:
        self.shop, self.cut = Shop(), Cut(store, at, when)
        options = {"retries": 1, "timeout_seconds": TIMEOUT_S} if long_running else {}
        offer = tool(self.shop.buy, long_running=long_running, asks=True, **options)
        self.deployment = Deployment(offer, store, worker_store=self.cut, max_rounds=100)
        self.shown: list[float] = []

    def work(self) -> None:
        """Work on everything; if the worker dies, let the time pass after which that is seen."""
        self.deployment.work()
        if self.cut.is_dead:
            self.deployment.clock.advance(TIMEOUT_S + 11)
            self.cut.is_dead = False

    def check(self, result: str) -> None:
        assert result == EXPECTED
        assert len(self.shop.seen) == 1, "the call's id, start and random numbers were the same in every run"
        keys = dict(self.shop.effects)
        assert set(self.shop.effects) == set(keys.items()), "a step always has the same key"
        assert len(set(keys.values())) == 2
        repeated = isinstance(self.cut.killed, RecordStep) and self.cut._when == "before"
        assert len(self.shop.effects) == 2 + repeated, "only a step that was cut before its record is done again"
        assert self.cut.reports == sorted(set(self.cut.reports)), "progress never goes back"
        assert self.shown == sorted(self.shown), "nor does it for the client"


def answered(questions: JsonObject) -> JsonObject:
    return {key: accept(**ANSWERS[question["params"]["message"]]) for key, question in questions.items()}


def in_place(run: Run) -> str:
    result = run.deployment.call(capabilities=FORMS).result
    while result["resultType"] == "input_required":
        again = {"requestState": result["requestState"], "inputResponses": answered(result["inputRequests"])}
        result = run.deployment.call(capabilities=FORMS, **again).result
    return text_of(result)


def as_task(run: Run) -> str:
    task_id = run.deployment.call(capabilities=TASKS | FORMS).result["taskId"]
    for _ in range(50):
        run.work()
        task = run.deployment.get(task_id)
        if task["status"] == "input_required":
            run.deployment.answer(task_id, **answered(task["inputRequests"]))
        elif task["status"] != "working":
            return text_of(task["result"])
    raise AssertionError("the task does not end")


def in_rounds(run: Run) -> str:
    params: JsonObject = {}
    for _ in range(50):
        answer = run.deployment.call(capabilities=FORMS, meta={"progressToken": 1}, **params)
        if answer.headers["content-type"] == "text/event-stream":
            *notifications, message = answer.stream
            run.shown += [item["params"]["progress"] for item in notifications]
            result = message["result"]
        else:
            result = answer.result
        if result["resultType"] == "complete":
            return text_of(result)
        params = {"requestState": result["requestState"], "inputResponses": answered(result["inputRequests"])}
        run.work()
    raise AssertionError("the rounds do not end")


def on_a_stream(run: Run) -> str:
    client = LegacyClient(run.deployment)
    stream = client.call(meta={"progressToken": 1})
    for _ in range(50):
        for question in requests(stream):
            client.respond(question, accept(**ANSWERS[question["params"]["message"]]))
        run.work()
        stream = client.poll(last_id(stream))
        run.shown += progress(stream)
        ended = response(stream)
        if ended is not None:
            return text_of(ended["result"])
    raise AssertionError("the stream does not end")


STORED: Final = pytest.mark.parametrize("wire", [as_task, in_rounds, on_a_stream])


def test_in_place_the_result_is_the_same() -> None:
    run = Run(MemoryCallStore(), long_running=False)
    run.check(in_place(run))
    assert run.deployment.queue.launched == []


@STORED
def test_as_a_stored_call_the_result_is_the_same(store: CallStore, wire: Callable[[Run], str]) -> None:
    run = Run(store)
    run.check(wire(run))
    assert len(run.deployment.queue.launched) == 4, "the first run, and one for each answer"
    assert run.cut.reports[-1:] == [4.0]


def test_a_short_tool_on_a_stream_has_the_same_result(store: CallStore) -> None:
    run = Run(store, long_running=False)
    run.check(on_a_stream(run))
    assert len(run.deployment.queue.launched) == 3


@STORED
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_may_be_killed_at_any_of_its_writes(wire: Callable[[Run], str], when: When) -> None:
    kinds = set()
    for at in range(1, MOST_WRITES):
        run = Run(MemoryCallStore(), at=at, when=when)
        run.check(wire(run))
        if run.cut.killed is None:
            break
        kinds.add(type(run.cut.killed).__name__)
    assert run.cut.killed is None, "no write is left out"
    assert kinds == {"Claim", "Report", "RecordStep", "Park", "Finish"}


@STORED
def test_a_worker_may_be_killed_at_any_write_to_dynamodb(wire: Callable[[Run], str], dynamodb: CallStore) -> None:
    for at in (1, 5, 9):
        run = Run(dynamodb, at=at, when="after")
        run.check(wire(run))
        assert run.cut.killed is not None


@STORED
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_any_launch_may_be_lost(wire: Callable[[Run], str], nth: int) -> None:
    run = Run(MemoryCallStore())
    work, queue = run.work, run.deployment.queue

    def work_unless_lost() -> None:
        if len(queue.launched) == nth and queue.waiting:
            queue.waiting.clear()
            queue.launched.append("lost")
            run.deployment.clock.advance(31)
        work()

    run.work = work_unless_lost  # type: ignore[method-assign]  # this run's queue loses one event
    run.check(wire(run))
    assert queue.launched.count("lost") == 1


@STORED
def test_any_piece_of_work_may_be_delivered_twice(wire: Callable[[Run], str]) -> None:
    run = Run(MemoryCallStore())
    work, queue = run.work, run.deployment.queue

    def work_twice() -> None:
        queue.waiting += queue.waiting
        work()

    run.work = work_twice  # type: ignore[method-assign]  # this run's queue delivers everything twice
    run.check(wire(run))


def test_without_retries_a_killed_worker_ends_the_call_readably() -> None:
    ends = {}
    for at in range(1, 6):
        run = Run(MemoryCallStore(), at=at)
        offer = tool(run.shop.buy, asks=True, timeout_seconds=TIMEOUT_S)
        run.deployment = Deployment(offer, run.deployment.store, worker_store=run.cut)
        told = on_a_stream(run)
        ends[type(run.cut.killed).__name__] = told
    assert ends.pop("Claim") == EXPECTED, "a worker that never had the call has lost nothing"
    assert {"Report", "Park"} <= set(ends)
    assert all("Call the tool again" in told for told in ends.values())
