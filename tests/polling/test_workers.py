"""Launches, workers and what becomes of a call when one of them fails: it ends once, in its result or a clear error."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcp_stateless import Context, MCPServer, Settings, ToolError
from mcp_stateless.calls.record import Claim, Finish, MoveRefused, State
from mcp_stateless.calls.store import StoreMisconfigured, StoreUnavailable
from mcp_stateless.errors import ConfigurationError, InvalidParams
from mcp_stateless.testing import events, lambda_context
from tests.http.door import Door
from tests.polling.streams import Stream, stream
from tests.polling.world import KEY, SECONDS, World, ran

LOST = "The call was lost: its worker ended without a result. Call the tool again."
NOT_STARTED = {"code": -32603, "message": "The call could not be started. Try again in a moment."}
OUTCOME = '{"result":{"content":[{"type":"text","text":"late"}],"isError":false}}'


class Counted:
    """A tool that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self) -> int:
        self.runs += 1
        return self.runs

    def offered_by(self, world: World, **options: Any) -> "Counted":
        async def counted() -> int:
            return await self()

        world.tool(counted, **options)
        return self


def claimed(world: World) -> str:
    """A call whose worker has claimed it and will never be heard of again."""
    call_id = world.queue.take()
    world.write(world.store.apply(call_id, Claim(), world.now_ms()))
    return call_id


def assert_failed(ended: Stream, text: str) -> None:
    assert ended.result == {"content": [{"type": "text", "text": text}], "isError": True}


# B76
def test_a_failing_launch_is_an_error_instead_of_an_id_and_fails_the_record(world: World) -> None:
    tool = Counted().offered_by(world)
    world.queue.is_down = True
    answer = world.post(request_id=9)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {"jsonrpc": "2.0", "id": 9, "error": NOT_STARTED}
    [call_id] = world.store.created
    assert world.read(call_id).state is State.FAILED
    world.work(call_id)
    assert tool.runs == 0


# B76, B81
@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), StoreMisconfigured("arn:aws:dynamodb:no:table")])
def test_an_outage_of_the_store_during_the_post_is_an_error(world: World, error: Exception) -> None:
    Counted().offered_by(world)

    def fail(asked: str) -> None:
        raise error

    world.store.before = fail
    assert world.post().error == NOT_STARTED
    assert world.queue.call_ids == []


# B75
def test_a_work_event_delivered_again_runs_nothing(world: World) -> None:
    tool = Counted().offered_by(world)
    begun = world.start()
    [call_id] = world.queue.call_ids
    for _ in range(3):
        world.work(call_id)
    assert tool.runs == 1
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


# B75
def test_a_work_event_delivered_again_while_the_tool_runs_does_nothing(world: World) -> None:
    runs: list[str] = []

    async def running() -> int:
        runs.append("run")
        event = {"mcp_stateless.work": world.store.created[0]}
        await asyncio.to_thread(world.handler(), event, lambda_context(900_000))
        return len(runs)

    world.tool(running)
    begun = world.start()
    world.work()
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


# B75
def test_work_events_delivered_at_the_same_time_run_the_tool_once(world: World) -> None:
    tool, started = Counted(), threading.Barrier(6)
    tool.offered_by(world)
    begun = world.start()
    event = {"mcp_stateless.work": world.queue.take()}

    def deliver(_: int) -> object:
        handler = world.handler()
        started.wait(SECONDS)
        return handler(event, lambda_context(900_000))

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(deliver, range(6))) == [{"worked": True}] * 6
    assert tool.runs == 1
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


def test_a_lost_event_is_launched_again_by_a_poll_after_30_seconds(world: World) -> None:
    tool = Counted().offered_by(world)
    begun = world.start()
    world.queue.call_ids.clear()
    world.clock.advance(30)
    again = world.poll(begun.last_id)
    assert world.queue.call_ids == []
    world.clock.advance(0.001)
    # Several clients or polls may come at once; one of them launches.
    again = world.poll(again.last_id)
    world.poll(again.last_id)
    assert len(world.queue.call_ids) == 1
    world.work()
    assert tool.runs == 1
    assert world.poll(again.last_id).result["structuredContent"] == {"result": 1}


def test_a_lost_event_is_launched_as_often_as_it_takes(world: World) -> None:
    Counted().offered_by(world)
    begun = world.start()
    last_id = begun.last_id
    for _ in range(4):
        world.queue.call_ids.clear()
        world.clock.advance(31)
        last_id = world.poll(last_id).last_id
    world.queue.is_down = True
    world.clock.advance(31)
    last_id = world.poll(last_id).last_id
    world.queue.is_down = False
    world.clock.advance(31)
    last_id = world.poll(last_id).last_id
    world.work()
    assert world.poll(last_id).result["structuredContent"] == {"result": 1}


def test_an_event_that_comes_after_it_was_launched_again_still_does(world: World) -> None:
    tool = Counted().offered_by(world)
    begun = world.start()
    world.clock.advance(31)
    again = world.poll(begun.last_id)
    first, second = world.queue.call_ids
    assert first == second
    world.work()
    world.work()
    assert tool.runs == 1
    assert world.poll(again.last_id).result["structuredContent"] == {"result": 1}


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


def test_lambdas_report_of_a_dead_worker_ends_the_call_at_once(world: World) -> None:
    Counted().offered_by(world)
    begun = world.start()
    assert world.report_failure(claimed(world)) == {"noted": True}
    assert_failed(world.poll(begun.last_id), LOST)


def test_lambdas_report_of_a_dead_worker_starts_the_next_attempt(world: World) -> None:
    tool = Counted().offered_by(world, retries=1)
    begun = world.start()
    world.report_failure(claimed(world))
    world.work()
    assert tool.runs == 1
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


def test_lambdas_report_of_an_event_that_nobody_took_ends_the_call(world: World) -> None:
    Counted().offered_by(world)
    begun = world.start()
    world.report_failure(world.queue.take(), "EventAgeExceeded")
    assert_failed(world.poll(begun.last_id), LOST)


# Launched again while the first event was still in the queue: that one is dropped when the other one's worker runs.
def test_lambdas_report_of_an_event_too_many_leaves_a_running_call_alone(world: World) -> None:
    Counted().offered_by(world)
    begun = world.start()
    call_id = claimed(world)
    world.report_failure(call_id, "EventAgeExceeded")
    world.write(world.store.apply(call_id, Finish(1, State.COMPLETED, OUTCOME), world.now_ms()))
    assert world.poll(begun.last_id).text == "late"


def test_lambdas_report_changes_nothing_about_a_call_that_has_ended(world: World) -> None:
    Counted().offered_by(world)
    begun = world.start()
    [call_id] = world.queue.call_ids
    world.work()
    world.report_failure(call_id)
    world.report_failure("no-such-call-0000000000")
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


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


def test_a_worker_that_cannot_reach_the_store_leaves_the_call_to_the_next_one(world: World) -> None:
    tool = Counted().offered_by(world)
    begun = world.start()
    outages = iter([True, False])

    def fail(asked: str) -> None:
        if asked == "Claim" and next(outages):
            raise StoreUnavailable("throttled")

    world.store.before = fail
    world.work()
    world.clock.advance(31)
    again = world.poll(begun.last_id)
    world.work()
    assert tool.runs == 1
    assert world.poll(again.last_id).result["structuredContent"] == {"result": 1}


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


def test_work_events_and_http_events_go_to_one_handler(local: World) -> None:
    Counted().offered_by(local)
    handler = local.handler()
    health = handler(events.http_api_event("GET", "/health"), lambda_context(1000))
    assert health["statusCode"] == 200
    assert handler({"mcp_stateless.work": "no-such-call-0000000000"}, lambda_context(1000)) == {"worked": True}


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"polling": "memory"}, "MCP_POLLING=memory"),
        ({"polling": "dynamodb"}, "MCP_CALL_TABLE"),
        ({"polling": "dynamodb", "call_table": "t"}, "MCP_WORKER_FUNCTION"),
    ],
)
def test_on_lambda_a_server_that_could_not_serve_polls_does_not_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with pytest.raises(ConfigurationError, match=named):
        MCPServer("s", "1", settings=Settings.model_validate({"signing_keys": (KEY,), **variables}))


def test_in_one_process_the_work_is_done_in_a_thread() -> None:
    settings = Settings.model_validate({"signing_keys": (KEY,), "polling": "memory", "hold_seconds": 5})
    server, done = MCPServer("s", "1", settings=settings), threading.Event()

    @server.tool(long_running=True)
    def outside() -> str:
        """Say which thread this is."""
        done.set()
        return threading.current_thread().name

    door = Door(server.lambda_handler())
    begun = stream(door.call("outside"))
    assert done.wait(SECONDS)
    ended = stream(door.send("GET", headers={"last-event-id": begun.last_id}))
    assert ended.text == "mcp:outside"


def test_records_that_expire_are_not_worked_on(local: World) -> None:
    tool = Counted().offered_by(local)
    local.start()
    local.clock.advance(local.settings.call_ttl_s)
    local.work()
    assert tool.runs == 0
