"""A call through the desk, held against a small model of what anybody outside may rely on, in any order of events."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcp_stateless.calls.desk import LAUNCH_MS, CallDesk, Caller, open_questions
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import (
    LATE_MS,
    CallRecord,
    Claim,
    Finish,
    Move,
    MoveRefused,
    Park,
    Progress,
    RecordStep,
    Report,
    State,
)
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.journal import Records
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.revisions import REVISIONS, Wire
from mcp_stateless.settings import Settings
from tests.tasks.deployment import RING, START, Clock, Queue

T = TypeVar("T")

RETRIES: Final = 1
TIMEOUT_S: Final = 60
LIFE_S: Final = 600
NAMES: Final = ["a", "b", "c"]
DONE: Final = '{"result":{"content":[],"isError":false}}'


@dataclass(slots=True)
class Model:
    """What should be true of the call."""

    phase: Literal["queued", "worked on", "asking", "over"] = "queued"
    due_ms: int = int(START * 1000) + LAUNCH_MS
    attempt: int = 0
    attempts: int = 1 + RETRIES
    open: set[str] = field(default_factory=set)
    used_keys: set[str] = field(default_factory=set)
    answers: dict[str, Wire] = field(default_factory=dict)
    steps: set[str] = field(default_factory=set)
    progress: float | None = None
    end: State | None = None
    launches: int = 1

    def finish(self, end: State) -> None:
        self.phase, self.end = "over", end

    def can_be_claimed(self, now_ms: int) -> bool:
        lost = self.phase == "worked on" and self.due_ms < now_ms and self.attempt < self.attempts
        return self.phase == "queued" or lost or (self.phase == "asking" and not self.open)

    def is_looked_at(self, now_ms: int) -> None:
        """Somebody asks how the call is doing; past its due time that has consequences."""
        is_due = now_ms > self.due_ms and self.phase != "over" and not (self.phase == "asking" and self.open)
        if is_due and self.phase == "worked on" and self.attempt >= self.attempts:
            self.finish(State.FAILED)
        elif is_due:
            self.launch_again(now_ms)

    def launch_again(self, now_ms: int) -> None:
        self.phase, self.due_ms = "queued", now_ms + LAUNCH_MS
        self.launches += 1


async def function() -> None:
    """Work."""


class Life(RuleBasedStateMachine):
    """Anything may happen to a call at any time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.queue, self.model = Clock(), Queue(), Model()
        self.store = MemoryCallStore()
        given = Settings.model_validate({"call_ttl_s": LIFE_S})
        self.desk = CallDesk(self.store, self.queue, RING, given, self.clock, lambda: "call")
        tool = Tool.from_function(function, name="tool", long_running=True, timeout_seconds=TIMEOUT_S, retries=RETRIES)
        call = Call(1, "tools/call", {}, REVISIONS["2026-07-28"])
        records = Records(call_id="journal", started_at=START)
        self.loop = asyncio.new_event_loop()
        self.do(self.desk.accept(call, tool, {}, "task", Caller(), records))

    def teardown(self) -> None:
        self.loop.close()

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def move(self, move: Move) -> bool:
        """Whether the store took a move."""
        try:
            self.do(self.store.apply("call", move, self.now_ms))
        except MoveRefused:
            return False
        return True

    @property
    def now_ms(self) -> int:
        return self.desk.now_ms()

    @property
    def is_gone(self) -> bool:
        return self.clock.now >= START + LIFE_S

    def is_mine(self, attempt: int) -> bool:
        """Whether this attempt still has the call."""
        return not self.is_gone and self.model.phase == "worked on" and self.model.attempt == attempt

    @rule(seconds=st.sampled_from([1, 29, 31, TIMEOUT_S + LATE_MS // 1000, TIMEOUT_S + LATE_MS // 1000 + 1, 300]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def a_worker_comes(self) -> None:
        expected = not self.is_gone and self.model.can_be_claimed(self.now_ms)
        assert self.move(Claim()) == expected
        if expected:
            self.model.phase, self.model.attempt = "worked on", self.model.attempt + 1
            self.model.due_ms = self.now_ms + TIMEOUT_S * 1000 + LATE_MS

    @rule(attempt=st.integers(0, 4), names=st.sets(st.sampled_from(NAMES), min_size=1))
    def a_worker_asks(self, attempt: int, names: set[str]) -> None:
        known = self.record()
        if known is None:
            return
        first = len(known.questions) + 1
        keys = {f"{name}{first}": name for name in sorted(names)}
        questions: dict[str, Wire] = {
            key: {"method": "m", "params": {}, "name": name, "number": number}
            for number, (key, name) in enumerate(keys.items(), first)
        }
        expected = self.is_mine(attempt)
        assert self.move(Park(attempt, questions)) == expected
        if expected:
            assert not set(keys) & self.model.used_keys
            self.model.phase, self.model.open = "asking", set(keys)
            self.model.used_keys |= set(keys)
            self.model.attempts += 1

    @rule(attempt=st.integers(0, 4), end=st.sampled_from([State.COMPLETED, State.FAILED]))
    def a_worker_is_done(self, attempt: int, end: Literal[State.COMPLETED, State.FAILED]) -> None:
        expected = self.is_mine(attempt)
        assert self.move(Finish(attempt, end, DONE)) == expected
        if expected:
            self.model.finish(end)

    @rule(attempt=st.integers(0, 4), progress=st.integers(0, 9))
    def a_worker_reports(self, attempt: int, progress: int) -> None:
        expected = self.is_mine(attempt)
        assert self.move(Report(attempt, Progress(progress, None, None, 1))) == expected
        if expected:
            self.model.progress = progress

    @rule(attempt=st.integers(0, 4), key=st.sampled_from(NAMES))
    def a_worker_records_a_step(self, attempt: int, key: str) -> None:
        expected = self.is_mine(attempt)
        assert self.move(RecordStep(attempt, key, {"value": key})) == expected
        if expected:
            self.model.steps.add(key)

    @rule(name=st.sampled_from(NAMES), number=st.integers(1, 6), text=st.text(max_size=3))
    def the_client_answers(self, name: str, number: int, text: str) -> None:
        self.answer(f"{name}{number}", text)

    @precondition(lambda self: self.model.open)
    @rule(data=st.data(), text=st.text(max_size=3))
    def the_client_answers_what_is_open(self, data: st.DataObject, text: str) -> None:
        self.answer(data.draw(st.sampled_from(sorted(self.model.open))), text)

    def answer(self, key: str, text: str) -> None:
        expected = not self.is_gone and self.model.phase == "asking" and key in self.model.open
        self.do(self.desk.answer("call", key, {"result": text}))
        if expected:
            self.model.open.remove(key)
            self.model.answers[key] = {"result": text}
            self.model.due_ms = self.now_ms + LAUNCH_MS
            self.model.launches += not self.model.open

    @rule()
    def the_client_cancels(self) -> None:
        self.do(self.desk.cancel("call"))
        if not self.is_gone and self.model.phase != "over":
            self.model.finish(State.CANCELLED)

    @rule()
    def somebody_looks(self) -> None:
        found = self.do(self.desk.read("call"))
        assert (found is None) == self.is_gone
        if found is not None:
            self.model.is_looked_at(self.now_ms)

    @rule()
    def the_platform_reports_a_lost_worker(self) -> None:
        self.do(self.desk.lost("call"))
        if self.is_gone or self.model.phase in ("asking", "over"):
            return
        if self.model.phase == "worked on" and self.model.attempt < self.model.attempts:
            self.model.launch_again(self.now_ms)
        else:
            self.model.finish(State.FAILED)

    def record(self) -> CallRecord | None:
        found = self.do(self.store.read("call", 0, self.now_ms))
        return None if found is None else found.record

    @invariant()
    def the_record_says_what_the_model_says(self) -> None:
        record, model = self.record(), self.model
        assert (record is None) == self.is_gone
        if record is None:
            return
        phases = {State.PENDING: "queued", State.RUNNING: "worked on", State.ASKING: "asking"}
        assert phases.get(record.state, "over") == model.phase
        assert (record.state if record.state.is_final else None) == model.end
        assert (record.outcome is None) == (model.end is None)
        assert record.attempt == model.attempt <= model.attempts == record.max_attempts
        assert record.answers == model.answers
        assert set(record.steps) == model.steps
        assert (None if record.progress is None else record.progress.progress) == model.progress
        if model.phase == "asking":
            assert set(open_questions(record)) == model.open
            assert record.open == len(model.open)

    @invariant()
    def it_is_launched_once_for_each_reason(self) -> None:
        assert len(self.queue.launched) == self.model.launches


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, derandomize=True)
