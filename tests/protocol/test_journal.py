"""The journal by itself: what it records, how questions are named, and keys that stay the same."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_stateless import questions
from mcp_stateless.errors import MissingClientCapability, NonDeterministicTool, StepError, ToolError
from mcp_stateless.journal import Journal, Records, Stop

FORMS: dict[str, Any] = {"elicitation": {}}
FORM = {"type": "object", "properties": {}}
Program = Callable[[Journal], Awaitable[Any]]


def fresh() -> Records:
    return Records("call", 1_800_000_000.0)


def again(records: Records) -> Records:
    """The records after their way to the client and back."""
    return Records.from_json(json.loads(json.dumps(records.to_json())))


def run(program: Program, records: Records, offered: dict[str, object] | None = None) -> tuple[Journal, Any]:
    """One run: its journal, and its value or the `Stop` that ended it."""
    journal = Journal(records, offered=offered, capabilities=FORMS)

    async def ended() -> Any:
        try:
            return await program(journal)
        except Stop as stop:
            return stop

    with asyncio.Runner() as runner:
        return journal, runner.run(ended())


def accept(text: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"text": text}}


def to_the_end(program: Program, answer: Callable[[str], dict[str, Any]], rounds: int = 10) -> tuple[Any, int]:
    """The value of a program whose every question is answered, and in how many runs."""
    records = fresh()
    offered: dict[str, object] | None = None
    for count in range(1, rounds + 1):
        journal, value = run(program, again(records), offered)
        if not isinstance(value, Stop):
            journal.check_ended("program")
            return value, count
        records = journal.ask_again("program")
        offered = {name: answer(question.params["message"]) for name, question in journal.pending.items()}  # type: ignore[arg-type]  # a text
    raise AssertionError("the program does not end")


async def ask(journal: Journal, message: str, key: str | None = None) -> str:
    answer = await journal.ask(questions.form(message, FORM), key)
    return str(answer.data["text"])


PLANS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(["A?", "B?"])),
        st.tuples(st.just("both"), st.sampled_from(["A?", "C?"])),
        st.tuples(st.just("step"), st.sampled_from(["s", "t", "u"])),
    ),
    max_size=6,
)


@given(PLANS)
@settings(deadline=None, max_examples=60)
def test_any_program_of_questions_and_steps_ends_with_each_step_done_once(plan: list[tuple[str, str]]) -> None:
    done: list[str] = []

    def do(what: str) -> str:
        done.append(what)
        return what

    async def program(journal: Journal) -> list[object]:
        values: list[object] = []
        for kind, what in plan:
            if kind == "ask":
                values.append(await ask(journal, what))
            elif kind == "both":
                values.append(await asyncio.gather(ask(journal, what), ask(journal, "other"), ask(journal, what)))
            else:
                values.append(await journal.step(what, partial(do, what)))
        return values

    value, runs = to_the_end(program, lambda message: accept(f"to {message}"))
    wanted: list[object] = []
    for kind, what in plan:
        said = f"to {what}"
        wanted.append({"ask": said, "both": [said, "to other", said], "step": what}[kind])
    assert value == wanted
    assert sorted(done) == sorted({what for kind, what in plan if kind == "step"})
    assert runs == 1 + sum(kind != "step" for kind, _ in plan)


def test_records_of_an_older_and_of_a_newer_package_are_read() -> None:
    records = Records.from_json({"call_id": "call", "started_at": 1.0, "answers": {"a": {}}, "not yet": 1})
    assert records == Records("call", 1.0, answers={"a": {}})
    assert again(records) == records


def test_questions_are_named_by_their_key_else_by_what_they_ask_and_how_often() -> None:
    async def program(journal: Journal) -> None:
        await asyncio.gather(
            ask(journal, "A?"),
            ask(journal, "A?"),
            ask(journal, "B?"),
            ask(journal, "C?", "mine"),
            return_exceptions=True,
        )

    journal, _ = run(program, fresh())
    first, second, third, fourth = journal.pending
    assert fourth == "mine"
    assert first.endswith("-1")
    assert second == first.removesuffix("-1") + "-2"
    assert third.endswith("-1")
    assert third != first


@pytest.mark.parametrize("key", [""])
def test_an_empty_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        run(lambda journal: ask(journal, "A?", key), fresh())
    with pytest.raises(ValueError, match="needs a key"):
        run(lambda journal: journal.step(key, list), fresh())


def test_an_answer_nobody_was_asked_for_is_not_recorded() -> None:
    journal, _ = run(lambda journal: ask(journal, "A?", "a"), fresh(), {"a": accept("early")})
    assert journal.records.answers == {}


def test_records_that_stay_unused_are_named_an_error() -> None:
    records = fresh()
    records.asked = ["a"]

    async def program(journal: Journal) -> int:
        return 1

    journal, _ = run(program, records, {"a": accept("x")})
    with pytest.raises(NonDeterministicTool, match="program took another way"):
        journal.check_ended("program")


def test_questions_that_keep_changing_come_to_an_end() -> None:
    runs: list[int] = []

    async def program(journal: Journal) -> str:
        runs.append(1)
        return await ask(journal, f"{len(runs)} o'clock?")

    with pytest.raises(NonDeterministicTool, match="give the question a key"):
        to_the_end(program, accept)
    assert len(runs) <= 4


def test_what_may_not_be_asked_is_refused_before_it_is_pending() -> None:
    journal = Journal(fresh(), capabilities=FORMS)
    with asyncio.Runner() as runner, pytest.raises(MissingClientCapability):
        runner.run(journal.ask(questions.ROOTS, None))
    assert not journal.pending


def test_the_key_of_a_step_depends_on_the_call_and_the_step_only() -> None:
    keys = {Journal(records).idempotency_key("s") for records in (fresh(), again(fresh()), Records("call", 0.0))}
    assert len(keys) == 1
    others = {Journal(Records("other", 0.0)).idempotency_key("s"), Journal(fresh()).idempotency_key("t")}
    assert len(keys | others) == 3


@pytest.mark.parametrize(("error", "text"), [(ToolError("sold out"), "sold out"), (KeyError("s3cret"), "KeyError")])
def test_a_failed_step_stays_failed(error: Exception, text: str) -> None:
    done: list[int] = []

    def fail() -> None:
        done.append(1)
        raise error

    records = fresh()
    for _ in range(2):
        with pytest.raises(StepError, match=text) as caught:
            run(lambda journal: journal.step("s", fail), records)
        assert "s3cret" not in str(caught.value)
        records = again(records)
    assert done == [1]


def test_while_something_recorded_is_ahead_a_run_is_replaying() -> None:
    seen: list[bool] = []

    async def program(journal: Journal) -> None:
        seen.append(journal.replaying)
        await journal.step("s", list)
        seen.append(journal.replaying)
        await ask(journal, "A?", "a")
        seen.append(journal.replaying)

    journal, _ = run(program, fresh())
    assert seen == [False, False]
    run(program, again(journal.ask_again("program")), {"a": accept("x")})
    assert seen == [False, False, True, True, False]
