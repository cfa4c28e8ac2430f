"""What the polls of a running call carry: progress that rises, log messages without gap or repeat, times to wait."""

import asyncio
import itertools
import math
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcp_stateless import Context
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.polled import retry_after
from mcp_stateless.calls.record import Claim, Finish, Progress, Report, State
from mcp_stateless.calls.store import StoreMisconfigured, StoreUnavailable
from mcp_stateless.notifications import log_message
from mcp_stateless.testing import events, lambda_context
from mcp_stateless.testing.gateway import to_http_response
from tests.http.door import Door
from tests.polling.streams import Stream, stream
from tests.polling.world import World

OUTCOME = '{"result":{"content":[{"type":"text","text":"done"}],"isError":false}}'


async def quick() -> int:
    return 1


class Attempt:
    """A worker in another process, as far as the store sees of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.call_id = world.queue.take()
        self.number = self._apply(Claim()).attempt
        self.batches = itertools.count(1)

    def _apply(self, move: Any) -> Any:
        found: list[Any] = []

        async def write() -> None:
            found.append(await self.world.store.apply(self.call_id, move, self.world.now_ms()))

        self.world.write(write())
        return found[0]

    def report(self, value: float, version: int = 1, message: str | None = None) -> None:
        self._apply(Report(self.number, Progress(value, 10, message, version)))

    def log(self, *data: object) -> None:
        messages = [log_message("info", item, None) for item in data]
        self.world.write(self.world.store.append(self.call_id, self.number, next(self.batches), messages))

    def finish(self) -> None:
        self._apply(Finish(self.number, State.COMPLETED, OUTCOME))


# B59, HOSTS 16
@pytest.mark.parametrize("token", [0, 7, "", "abc"])
def test_progress_rises_with_every_poll_for_a_caller_that_gave_a_token(world: World, token: str | int) -> None:
    world.tool(quick)
    last = world.start(token=token)
    attempt, values = Attempt(world), []
    for reported in (None, None, 0, None, 1, 1.5, None, None):
        if reported is not None:
            attempt.report(reported)
        last = world.poll(last.last_id)
        [heartbeat] = last.messages
        assert heartbeat["params"]["progressToken"] == token
        assert last.messages[-1]["method"] == "notifications/progress"
        values.append(last.progress)
    assert values == sorted(set(values))
    assert [round(value, 9) for value in values] == [0, 0, 0, 0, 1, 1.5, 1.5, 1.5]


# B59: also where a float's next power of two is one step away, as the sum of ten tenths is.
@pytest.mark.parametrize(
    "start", [sum([0.1] * 10), math.nextafter(2.0, 0), 0, 5e-324, 1e-300, 99.99999999999999, 2**53, 1e300]
)
def test_progress_rises_from_every_value(local: World, start: float) -> None:
    local.tool(quick)
    last = local.start(token=1)
    attempt = Attempt(local)
    attempt.report(start)
    values = []
    for _ in range(30):
        last = local.poll(last.last_id)
        values.append(last.progress)
    attempt.report(math.nextafter(start, math.inf), 2)
    last = local.poll(last.last_id)
    assert [*values, last.progress] == sorted({*values, last.progress})
    assert values[-1] == pytest.approx(start)


def test_progress_carries_total_and_message(world: World) -> None:
    world.tool(quick)
    begun = world.start(token="t")
    Attempt(world).report(3, message="three")
    [heartbeat] = world.poll(begun.last_id).messages
    params = heartbeat["params"]
    assert (params["total"], params["message"]) == (10, "three")


def test_without_a_token_there_is_no_progress(world: World) -> None:
    world.tool(quick)
    begun = world.start()
    Attempt(world).report(3)
    assert world.poll(begun.last_id).messages == []


# B77, A37: cut anywhere, resumed from any id seen so far.
def test_log_messages_come_in_order_once_after_every_id(world: World) -> None:
    world.tool(quick)
    begun = world.start(token=1)
    attempt, numbers = Attempt(world), itertools.count(1)
    seen: dict[str, int] = {begun.last_id: 0}
    chance = random.Random(7)

    def check(last_id: str) -> Stream:
        polled = world.poll(last_id)
        came, expected = seen[last_id], iter(range(seen[last_id] + 1, sent + 1))
        assert polled.logs == list(expected)
        for event in polled.events:
            came += "notifications/message" in event.data
            if event.id is not None:
                assert seen.setdefault(event.id, came) == came
        return polled

    sent, last = 0, begun.last_id
    for size in (1, 3, 0, 12, 2, 1):
        batch = list(itertools.islice(numbers, size))
        sent += size
        if batch:
            attempt.log(*batch)
        last = check(last).last_id
        for earlier in chance.sample(sorted(seen), min(4, len(seen))):
            check(earlier)
    attempt.finish()
    for last_id in list(seen):
        assert check(last_id).text == "done"


# B77
def test_twelve_batches_in_one_millisecond_keep_their_order(world: World) -> None:
    world.tool(quick)
    begun = world.start()
    attempt = Attempt(world)
    for number in range(1, 13):
        attempt.log(number)
    assert world.poll(begun.last_id).logs == list(range(1, 13))


def test_the_messages_of_a_second_attempt_come_after_those_of_the_first(deploy: Callable[..., World]) -> None:
    world = deploy()
    world.tool(quick, retries=1, timeout_seconds=5)
    begun = world.start(token=1)
    first = Attempt(world)
    first.log(*range(11))
    first.report(5)
    seen = world.poll(begun.last_id)
    assert seen.logs == list(range(11))
    world.clock.advance(60)
    lost = world.poll(seen.last_id)
    second = Attempt(world)
    assert second.number == 2
    second.log("a")
    last = world.poll(lost.last_id)
    assert last.logs == ["a"]
    assert seen.progress < lost.progress < last.progress
    assert world.poll(begun.last_id).logs == [*range(11), "a"]


def test_a_worker_writes_progress_and_messages_while_the_tool_runs(deploy: Callable[..., World]) -> None:
    world = deploy(log_messages="info", flush_interval_ms=1)
    polls: list[Stream] = []

    async def reporting(ctx: Context[None]) -> str:
        for number in (1, 2):
            await ctx.report_progress(number, 2, f"at {number}")
            await ctx.info(number)
            await ctx.debug("not offered")
            await world.until_written(number)
            polls.append(await asyncio.to_thread(world.poll, polls[-1].last_id))
        return "done"

    world.tool(reporting, structured_output=False)
    polls.append(world.start(token=1))
    world.work()
    polls.append(world.poll(polls[-1].last_id))
    assert [each.logs for each in polls] == [[], [1], [2], []]
    assert [round(each.progress, 9) for each in polls[1:3]] == [1, 2]
    assert polls[-1].text == "done"


# The last messages of a tool, and the batch that is being written when it returns, come before its result.
def test_no_message_is_lost_when_the_tool_ends(deploy: Callable[..., World]) -> None:
    world = deploy(log_messages="info", flush_interval_ms=1)

    async def logging(ctx: Context[None]) -> str:
        await ctx.info("first")
        await world.until_asked("append")
        await ctx.info("last")
        return "done"

    world.tool(logging, structured_output=False)
    world.store.slow = ("append",)
    begun = world.start()
    world.work()
    ended = world.poll(begun.last_id)
    assert ended.logs == ["first", "last"]
    assert ended.text == "done"
    assert world.get(begun.last_id).body == world.get(begun.last_id).body


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), StoreMisconfigured("no permission to put")])
def test_progress_that_cannot_be_written_does_not_cost_the_result(
    deploy: Callable[..., World], error: Exception
) -> None:
    world = deploy(log_messages="info", flush_interval_ms=1)

    def fail(asked: str) -> None:
        if asked in ("Report", "append"):
            raise error

    async def reporting(ctx: Context[None]) -> str:
        await ctx.report_progress(1)
        await ctx.info("lost")
        await world.until_asked("Report")
        await ctx.report_progress(2)
        await world.until_asked("Report", 2)
        await ctx.info("lost, too")
        return "done"

    world.tool(reporting, structured_output=False)
    begun = world.start(token=1)
    world.store.before = fail
    world.work()
    world.store.before = lambda asked: None
    assert world.poll(begun.last_id).text == "done"


def test_reports_in_a_tight_loop_cost_one_write(deploy: Callable[..., World]) -> None:
    world = deploy(log_messages="info")

    async def eager(ctx: Context[None]) -> int:
        for number in range(1, 2000):
            await ctx.report_progress(number)
            await ctx.info(number)
        return 1

    world.tool(eager)
    begun = world.start(token=1)
    world.work()
    assert world.store.asked == ["create", "Claim", "append", "Finish"]
    assert world.poll(begun.last_id).logs == list(range(1, 1001))


# B59
@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), StoreMisconfigured("no such table")])
def test_a_poll_survives_an_outage_of_the_store(world: World, error: Exception) -> None:
    world.tool(quick)
    begun = world.start(token=1)
    world.work()

    def fail(asked: str) -> None:
        raise error

    world.store.before = fail
    ids = [begun.last_id]
    for _ in range(3):
        [event] = world.poll(ids[-1]).events
        assert event.data == ""
        assert event.retry == world.settings.max_retry_ms
        assert event.id is not None
        ids.append(event.id)
    assert len(set(ids)) == 4
    world.store.before = lambda asked: None
    assert world.poll(ids[-1]).result["structuredContent"] == {"result": 1}


def test_an_outage_while_a_late_call_is_looked_after_is_no_error_either(world: World) -> None:
    world.tool(quick)
    begun = world.start()
    world.clock.advance(31)

    def fail(asked: str) -> None:
        if asked == "Relaunch":
            raise StoreUnavailable("throttled")

    world.store.before = fail
    again = world.poll(begun.last_id)
    world.store.before = lambda asked: None
    last = world.poll(again.last_id)
    assert len(world.queue.call_ids) == 2
    world.work()
    assert world.poll(last.last_id).result["structuredContent"] == {"result": 1}


# B59: at most 13 GETs for a call of 60 s at the defaults; CALLS.md: 11, and 47 for ten minutes.
@pytest.mark.parametrize(("seconds", "most"), [(60, 13), (600, 47)])
def test_the_times_to_wait_grow_with_the_call(local: World, seconds: int, most: int) -> None:
    local.tool(quick, timeout_seconds=800)
    last = local.start()
    attempt, started, gets, waits = Attempt(local), local.clock.now, 0, []
    while last.response is None:
        assert last.retry is not None
        waits.append(last.retry)
        local.clock.advance(last.retry / 1000)
        if local.clock.now - started >= seconds and local.read(attempt.call_id).outcome is None:
            attempt.finish()
        last = local.poll(last.last_id)
        gets += 1
    assert gets <= most
    assert waits == sorted(waits)
    assert (waits[0], max(waits)) == (1000, 15_000)
    # A result is waited for by half of what the call took, at most.
    assert local.clock.now - started <= seconds + min(seconds / 2 + 1, 15)


def test_the_times_to_wait_are_settings_in_milliseconds() -> None:
    world = World(MemoryCallStore(), min_retry_ms=50, max_retry_ms=300)
    world.tool(quick)
    begun = world.start()
    assert begun.retry == 50
    record = world.read(world.queue.take())
    found = []
    for _ in range(4):
        found.append(retry_after(world.desk, record))
        world.clock.advance(0.3)
    assert found == [50, 150, 300, 300]


# B72, HOSTS 17: a reply that the platform would not carry is no reply at all.
@pytest.mark.parametrize("source", ["http_api", "alb"])
def test_a_poll_carries_what_the_platform_takes_and_the_rest_with_the_next(source: str) -> None:
    world = World(MemoryCallStore(), log_messages="info")
    world.tool(quick)
    last = world.start(token=1)
    door, attempt, found = Door(world.handler(), source), Attempt(world), []
    for number in range(40):
        attempt.log([number, '"' * 50_000])
    for _ in range(41):
        last = stream(door.send("GET", headers={"last-event-id": last.last_id}))
        found += [number for number, _ in last.logs]
        if len(found) == 40:
            break
    assert found == list(range(40))
    attempt.finish()
    assert stream(door.send("GET", headers={"last-event-id": last.last_id})).text == "done"


@pytest.mark.parametrize(
    ("source", "fits"), [("http_api", True), ("rest_api", True), ("function_url", True), ("alb", False)]
)
def test_a_result_that_the_platform_does_not_take_is_a_clear_error(source: str, fits: bool) -> None:
    world, text = World(MemoryCallStore()), '"' * 400_000

    async def large() -> str:
        return text

    world.tool(large, structured_output=False)
    begun = world.start()
    world.work()
    ended = stream(Door(world.handler(), source).send("GET", headers={"last-event-id": begun.last_id}))
    assert ended.result.get("isError", False) != fits
    assert (ended.text == text) == fits


# B59: a poll may be held, but never for longer than the request may take.
def test_a_held_poll_is_answered_as_soon_as_there_is_news_and_before_the_gateway_ends_it() -> None:
    world = World(MemoryCallStore(), hold_seconds=60, deadline_margin_ms=100)
    world.tool(quick)
    begun = world.start()
    started = time.monotonic()
    event = events.http_api_event("GET", "/mcp", {"last-event-id": begun.last_id})
    response = to_http_response(world.handler()(event, lambda_context(2_000)))
    assert response.status == 200
    assert response.body.startswith(b"id: ")
    assert time.monotonic() - started < 1.9
    world.work()
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}
