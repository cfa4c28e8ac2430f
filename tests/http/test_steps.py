"""Runs of one call: what they must have in common, steps, and what a client hears meanwhile."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcp_stateless import Context, ToolError
from mcp_stateless.questions import InputRequired, form
from tests.http.caller import (
    Caller,
    Name,
    accept,
    named,
    named_blocking,
    questions,
    tool,
)
from tests.http.door import FORMS, Weight


def test_a_swallowed_stop_is_an_error_and_not_a_result(weight: Weight) -> None:
    async def swallow(ctx: Context[None]) -> str:
        try:
            await ctx.elicit("?", Name)
        except BaseException:
            return "went on"
        return "answered"

    answer = Caller(weight, tool(swallow)).start()
    assert answer.result["isError"] is True
    assert "tool went on after a question had ended its run" in answer.text


def test_a_stop_swallowed_before_an_explicit_question_is_an_error_too(weight: Weight) -> None:
    async def swallow(ctx: Context[None]) -> InputRequired:
        try:
            await ctx.elicit("?", Name)
        except BaseException:
            return InputRequired({"other": form("Other?", Name)})
        return InputRequired({})

    answer = Caller(weight, tool(swallow)).start()
    assert answer.result.get("isError") is True, answer.json


def test_except_exception_does_not_swallow_a_question(weight: Weight) -> None:
    async def careless(ctx: Context[None]) -> str:
        try:
            return await named(ctx)
        except Exception:
            return "swallowed"

    caller = Caller(weight, tool(careless))
    assert caller.reply(caller.start(), {"name": accept(name="Ada")}).text == "accept:Ada"


def test_a_clean_up_on_the_way_out_may_fail_on_its_own(weight: Weight) -> None:
    async def failing(ctx: Context[None]) -> str:
        try:
            return await named(ctx)
        finally:
            raise ToolError("could not clean up")

    answer = Caller(weight, tool(failing)).start()
    assert answer.text == "could not clean up"


def test_a_real_error_beside_a_question_weighs_more(weight: Weight) -> None:
    async def fail() -> None:
        raise ToolError("the other half failed")

    async def both(ctx: Context[None]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(named(ctx))
            group.create_task(fail())

    answer = Caller(weight, tool(both)).start()
    assert answer.result["isError"] is True


def test_records_that_nothing_asked_for_are_an_error(weight: Weight, caplog: pytest.LogCaptureFixture) -> None:
    runs = []

    async def fickle(ctx: Context[None]) -> str:
        runs.append(1)
        return await named(ctx) if len(runs) == 1 else "did not ask"

    caller = Caller(weight, tool(fickle))
    answer = caller.reply(caller.start(), {"name": accept(name="Ada")})
    assert answer.result["isError"] is True
    assert "tool took another way" in answer.text
    assert "tool took another way" in caplog.text


def test_a_question_with_the_time_in_it_ends_in_an_error_that_says_so(weight: Weight) -> None:
    runs = []

    async def timed(ctx: Context[None]) -> str:
        runs.append(1)
        return (await ctx.elicit(f"It is {len(runs)} o'clock. Go on?", Name)).action

    caller = Caller(weight, tool(timed))
    answer = caller.start()
    for _ in range(10):
        if answer.result["resultType"] == "complete":
            break
        answer = caller.reply(answer, {key: accept(name="x") for key in questions(answer)})
    assert answer.result["isError"] is True
    assert "tool asks something else each time" in answer.text
    assert "time" in answer.text
    assert "key" in answer.text
    assert len(runs) <= 4


def test_with_a_key_the_text_may_differ_from_run_to_run(weight: Weight) -> None:
    runs = []

    async def timed(ctx: Context[None]) -> str:
        runs.append(1)
        return (await ctx.elicit(f"It is {len(runs)} o'clock. Go on?", Name, key="go")).action

    caller = Caller(weight, tool(timed))
    assert caller.reply(caller.start(), {"go": accept(name="x")}).text == "accept"


# Steps and what is stable


def test_a_step_runs_once_and_its_value_is_what_json_has(weight: Weight) -> None:
    runs: list[str] = []
    seen: list[object] = []

    def load(idempotency_key: str) -> dict[Any, Any]:
        runs.append(idempotency_key)
        return {"pair": (1, 2), 5: "five", "name": Name(name="x")}

    async def stepping(ctx: Context[None]) -> str:
        seen.append(await ctx.step("load", load))
        return await named(ctx)

    caller = Caller(weight, tool(stepping))
    assert caller.reply(caller.start(), {"name": accept(name="Ada")}).text == "accept:Ada"
    assert len(runs) == 1
    assert seen == [{"pair": [1, 2], "5": "five", "name": {"name": "x"}}] * 2


@pytest.mark.parametrize("kind", ["async", "sync", "lambda", "blocking"])
def test_steps_take_every_kind_of_function(weight: Weight, kind: str) -> None:
    runs: list[str] = []

    async def async_step() -> str:
        runs.append("async")
        return "value"

    def sync_step() -> str:
        runs.append("sync")
        return "value"

    async def stepping(ctx: Context[None]) -> str:
        fn: Callable[..., Any] = {"async": async_step, "sync": sync_step, "lambda": lambda: async_step()}[kind]
        value = await ctx.step("s", fn)
        return f"{value} {await named(ctx)}"

    def blocking(ctx: Context[None]) -> str:
        return f"{ctx.blocking.step('s', sync_step)} {named_blocking(ctx)}"

    caller = Caller(weight, tool(blocking if kind == "blocking" else stepping))
    assert caller.reply(caller.start(), {"name": accept(name="Ada")}).text == "value accept:Ada"
    assert len(runs) == 1


@pytest.mark.parametrize(("error", "text"), [(ToolError("sold out"), "sold out"), (ValueError("secret"), "ValueError")])
def test_a_failed_step_is_recorded_and_not_run_again(weight: Weight, error: Exception, text: str) -> None:
    runs = []

    def fail() -> None:
        runs.append(1)
        raise error

    async def stepping(ctx: Context[None]) -> str:
        try:
            await ctx.step("fail", fail)
        except ToolError as caught:
            told = f"{type(caught).__name__} {caught}"
        return f"{told} {await named(ctx)}"

    caller = Caller(weight, tool(stepping))
    ended = caller.reply(caller.start(), {"name": accept(name="Ada")})
    assert ended.text.startswith("StepError ")
    assert text in ended.text
    assert "secret" not in ended.text
    assert len(runs) == 1


def test_the_same_step_at_once_runs_once(weight: Weight) -> None:
    runs = []

    async def slow() -> int:
        runs.append(1)
        await asyncio.sleep(0.01)
        return len(runs)

    async def stepping(ctx: Context[None]) -> list[int]:
        return list(await asyncio.gather(*(ctx.step("slow", slow) for _ in range(3))))

    assert Caller(weight, tool(stepping)).start().result["structuredContent"] == [1, 1, 1]


@pytest.mark.parametrize("value", [float("nan"), object(), {"a": [object()]}])
def test_a_step_value_that_json_cannot_carry_is_an_error_that_names_the_step(weight: Weight, value: object) -> None:
    async def stepping(ctx: Context[None]) -> None:
        await ctx.step("odd", lambda: value)

    answer = Caller(weight, tool(stepping)).start()
    assert answer.result["isError"] is True
    assert "'odd'" in answer.text


def test_a_step_left_out_by_a_replay_is_an_error(weight: Weight) -> None:
    runs = []

    async def stepping(ctx: Context[None]) -> str:
        runs.append(1)
        if len(runs) == 1:
            await ctx.step("only once", lambda: 1)
        return await named(ctx)

    caller = Caller(weight, tool(stepping))
    assert "took another way" in caller.reply(caller.start(), {"name": accept(name="Ada")}).text


def test_steps_work_where_nothing_can_be_asked(weight: Weight) -> None:
    async def stepping(ctx: Context[None]) -> int:
        value: int = await ctx.step("s", lambda: 5)
        return value

    assert Caller(weight, tool(stepping)).door.call("tool").text == "5"


def test_what_a_call_is_stays_the_same_in_every_run_of_it(weight: Weight) -> None:
    seen: list[tuple[object, ...]] = []

    async def stable(ctx: Context[None]) -> str:
        seen.append((ctx.call_id, ctx.started_at, ctx.random.random(), ctx.random.randint(0, 10**9)))
        return await named(ctx)

    caller = Caller(weight, tool(stable))
    asked = caller.start()
    caller.reply(asked, {"name": {}})
    caller.reply(asked, {"name": accept(name="Ada")})
    assert len(set(seen)) == 1
    assert abs(seen[0][1].timestamp() - time.time()) < 60  # type: ignore[attr-defined]  # a datetime
    caller.start()
    assert len({entry[0] for entry in seen}) == 2
    assert len({entry[2] for entry in seen}) == 2


@pytest.mark.parametrize("inner", ["question", "step"])
@pytest.mark.parametrize("blocking", [False, True])
def test_a_step_holds_neither_questions_nor_steps(
    weight: Weight, inner: str, blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def stepping(ctx: Context[None]) -> None:
        async def work() -> None:
            await (ctx.elicit("Inside?", Name) if inner == "question" else ctx.step("outer", list))

        await ctx.step("outer", work)

    def stepping_blocking(ctx: Context[None]) -> None:
        def work() -> None:
            ctx.blocking.elicit("Inside?", Name) if inner == "question" else ctx.blocking.step("outer", list)

        ctx.blocking.step("outer", work)

    answer = Caller(weight, tool(stepping_blocking if blocking else stepping)).start()
    assert answer.text == "The step 'outer' failed: RuntimeError"
    assert "cannot be inside a step" in caplog.text


# Progress and logs


def test_progress_is_silent_until_a_replay_passes_what_is_recorded(weight: Weight) -> None:
    async def reporting(ctx: Context[None]) -> str:
        await ctx.report_progress(1)
        answer = await named(ctx)
        await ctx.report_progress(2)
        return answer

    caller = Caller(weight, tool(reporting))
    meta = {"progressToken": "t"}
    first = caller.door.modern("tools/call", caller.params, capabilities=FORMS, meta=meta).stream
    assert [message.get("params", {}).get("progress") for message in first] == [1, None]
    assert first[-1]["result"]["resultType"] == "input_required"
    params = {
        **caller.params,
        "requestState": first[-1]["result"]["requestState"],
        "inputResponses": {"name": accept(name="Ada")},
    }
    second = caller.door.modern("tools/call", params, capabilities=FORMS, meta=meta).stream
    assert [message.get("params", {}).get("progress") for message in second] == [2, None]
