"""Launches: lost, late and repeated work events, and Lambda's reports of them. A call runs once, whatever comes."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_stateless import MCPServer, Settings
from mcp_stateless.calls.record import Finish, State
from mcp_stateless.calls.store import StoreMisconfigured, StoreUnavailable
from mcp_stateless.errors import ConfigurationError
from mcp_stateless.testing import events, lambda_context
from tests.http.door import Door
from tests.polling.counted import LOST, OUTCOME, Counted, assert_failed, claimed
from tests.polling.streams import stream
from tests.polling.world import KEY, SECONDS, World

NOT_STARTED = {"code": -32603, "message": "The call could not be started. Try again in a moment."}


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
