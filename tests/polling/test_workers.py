"""Workers that are late, lost or short of time: a call ends once, in its result or in a clear error."""

import asyncio
import itertools
import threading
from collections.abc import Callable

import pytest

from mcp_stateless import Context, ToolError
from mcp_stateless.calls.record import Finish, MoveRefused, State
from mcp_stateless.calls.store import StoreUnavailable
from mcp_stateless.errors import InvalidParams
from tests.polling.counted import LOST, OUTCOME, Counted, assert_failed, claimed
from tests.polling.world import SECONDS, World, ran


# B76
def test_a_worker_past_its_time_is_given_up_by_the_next_poll(world: World) -> None:
    Counted().offered_by(world, timeout_seconds=60)
    begun = world.start(request_id=4)
    call_id = claimed(world)
    world.clock.advance(70)
    running = world.poll(begun.last_id)
    assert running.response is None
    world.clock.advance(0.001)
    ended = world.poll(running.last_id)
    assert_failed(ended, LOST)
    assert ended.response is not None
    assert ended.response["id"] == 4
    # The worker was only late: it can change nothing any more.
    late = Finish(1, State.COMPLETED, OUTCOME)
    with pytest.raises(MoveRefused):
        ran(world.store.apply(call_id, late, world.now_ms()))
    assert_failed(world.poll(running.last_id), LOST)


def test_a_late_worker_cannot_end_the_attempt_after_it(world: World) -> None:
    Counted().offered_by(world, retries=1, timeout_seconds=60)
    begun = world.start()
    claimed(world)
    world.clock.advance(71)
    again = world.poll(begun.last_id)
    call_id = claimed(world)
    with pytest.raises(MoveRefused):
        ran(world.store.apply(call_id, Finish(1, State.COMPLETED, OUTCOME), world.now_ms()))
    assert world.poll(again.last_id).response is None
    world.write(world.store.apply(call_id, Finish(2, State.COMPLETED, OUTCOME), world.now_ms()))
    assert world.poll(again.last_id).text == "late"


def test_a_lost_worker_is_followed_by_the_next_attempt_which_repeats_no_step(world: World) -> None:
    effects: list[str] = []
    dies = [True]

    async def pays(ctx: Context[None]) -> str:
        def pay(idempotency_key: str) -> str:
            effects.append(idempotency_key)
            return "receipt"

        receipt = await ctx.step("pay", pay)
        if dies.pop() if dies else False:
            world.store.before = dead
        return f"{receipt} {ctx.call_id} {ctx.started_at.isoformat()}"

    def dead(asked: str) -> None:
        raise ProcessDied

    world.tool(pays, retries=1, structured_output=False)
    begun = world.start()
    world.work()
    world.store.before = lambda asked: None
    assert world.poll(begun.last_id).response is None
    world.clock.advance(131)
    again = world.poll(begun.last_id)
    world.work()
    ended = world.poll(again.last_id)
    assert ended.text.startswith("receipt ")
    assert len(effects) == 1
    assert world.clock.now - 131 == pytest.approx(1_800_000_000)
    assert ended.text.endswith("2027-01-15T08:00:00+00:00")


class ProcessDied(BaseException):
    """Nothing of the worker's invocation goes on after this."""


def test_attempts_come_to_an_end(world: World) -> None:
    Counted().offered_by(world, retries=2, timeout_seconds=1)
    last_id = world.start().last_id
    for _ in range(3):
        claimed(world)
        world.clock.advance(12)
        last_id = (polled := world.poll(last_id)).last_id
    assert_failed(polled, LOST)
    assert world.queue.call_ids == []


# B76
@pytest.mark.parametrize("context_ms", [5_300, 5_000, 1])
def test_a_worker_with_little_time_left_writes_that_before_it_is_killed(world: World, context_ms: int) -> None:
    async def slow() -> None:
        await asyncio.sleep(SECONDS)

    world.tool(slow)
    begun = world.start()
    world.work(context_ms=context_ms)
    ended = world.poll(begun.last_id)
    assert ended.result["isError"]
    assert ended.text.startswith("long was stopped after 0 s: the worker function has less time left")


def test_the_tools_own_time_limit_ends_it(world: World) -> None:
    released = threading.Event()

    def stuck() -> None:
        released.wait(SECONDS)

    world.tool(stuck, timeout_seconds=1)
    begun = world.start()
    world.work()
    released.set()
    assert world.poll(begun.last_id).text == "long was stopped after 1 s: the tool has a time limit of 1 s"


# B72
@pytest.mark.parametrize("letter", ["x", "ä", "\x00"])
def test_a_result_too_large_for_an_event_ends_in_a_clear_error(deploy: Callable[..., World], letter: str) -> None:
    world = deploy(max_event_bytes=50_000)

    async def large(n: int) -> str:
        return letter * n

    world.tool(large, structured_output=False)
    begun, small = world.start({"n": 50_000}), world.start({"n": 5_000})
    world.work()
    world.work()
    ended = world.poll(begun.last_id)
    assert ended.result["isError"]
    assert "Ask for less" in ended.text
    assert world.poll(small.last_id).text == letter * 5_000


# B72
@pytest.mark.parametrize("size", [390_000, 410_000, 999_000])
def test_results_about_and_over_the_size_of_an_item_come_back_whole(world: World, size: int) -> None:
    async def large() -> str:
        return "ä" * (size // 2)

    world.tool(large, structured_output=False)
    begun = world.start()
    world.work()
    assert world.poll(begun.last_id).text == "ä" * (size // 2)


def test_what_a_tool_raises_is_told_as_it_is_in_place(world: World) -> None:
    async def raising(kind: str) -> None:
        raise {"tool": ToolError("no such city"), "protocol": InvalidParams("bad"), "bug": ValueError("secret")}[kind]

    world.tool(raising)
    texts = []
    for kind in ("tool", "protocol", "bug"):
        begun = world.start({"kind": kind})
        world.work()
        ended = world.poll(begun.last_id)
        assert ended.result["isError"]
        texts.append(ended.text)
    assert texts[:2] == ["no such city", "bad"]
    assert texts[2].startswith("long failed unexpectedly. Reference for the operator: ")
    assert "secret" not in texts[2]


def test_a_worker_that_cannot_reach_the_store_at_once_claims_the_call_a_moment_later(world: World) -> None:
    tool = Counted().offered_by(world)
    begun = world.start()
    outages = iter([True, False])

    def fail(asked: str) -> None:
        if asked == "Claim" and next(outages):
            raise StoreUnavailable("throttled")

    world.store.before = fail
    world.work()
    assert tool.runs == 1
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


def test_a_result_is_written_again_when_the_store_does_not_take_it(world: World) -> None:
    tool = Counted().offered_by(world)
    begun = world.start()
    failures = itertools.count(1)

    def fail(asked: str) -> None:
        if asked == "Finish" and next(failures) < 3:
            raise StoreUnavailable("throttled")

    world.store.before = fail
    world.work()
    assert tool.runs == 1
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


def test_a_tool_that_is_not_there_any_more_ends_its_calls(world: World) -> None:
    Counted().offered_by(world)
    begun = world.start()
    del world.server.registry.tools["long"]
    world.work()
    assert_failed(world.poll(begun.last_id), "This tool is not offered any more")
