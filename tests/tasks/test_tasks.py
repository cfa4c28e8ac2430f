"""Tasks (2026-07-28) from the first answer to the last, over every store: what the client sees of a call in between."""

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import mcp_types as types
import pytest
from pydantic import BaseModel

from mcp_stateless import Context, MCPServer, Settings, ToolError
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import CallRecord, Claim, Finish, Move, RecordStep
from mcp_stateless.calls.store import CallStore, RecordTooLarge, StoreUnavailable
from mcp_stateless.errors import InternalError
from mcp_stateless.testing import Client
from tests.http.door import JsonObject
from tests.tasks.deployment import KEY, START, TASKS, Deployment, text_of, tool

SECONDS = 10


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


async def done() -> dict[str, int]:
    """Work."""
    return {"sum": 3}


def until(condition: Callable[[], bool]) -> None:
    """Come back as soon as another thread made it so."""
    pause = threading.Event()
    for _ in range(SECONDS * 200):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError(f"it did not happen within {SECONDS} s")


def test_a_task_runs_from_working_to_completed(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    created = deployment.call().result
    assert created["resultType"] == "task"
    assert not {"task", "result", "error", "inputRequests", "requestState", "content"} & set(created)
    before = deployment.get(created["taskId"])
    assert (before["resultType"], before["status"]) == ("complete", "working")
    assert not {"result", "error", "inputRequests"} & set(before)
    assert deployment.work() == 1
    ended = deployment.get(created["taskId"])
    assert (ended["resultType"], ended["status"], ended["taskId"]) == ("complete", "completed", created["taskId"])
    result = types.CallToolResult.model_validate(ended["result"])
    assert (result.structured_content, result.is_error) == ({"sum": 3}, False)
    assert len(deployment.queue.launched) == 1


def test_a_task_can_be_looked_up_as_soon_as_its_id_is_told(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    for _ in range(5):
        assert deployment.get(deployment.start())["status"] == "working"


def test_the_fields_of_a_task_have_the_shapes_of_the_specification(store: CallStore) -> None:
    deployment = Deployment(tool(done), store, call_ttl_s=600, min_retry_ms=1000, max_retry_ms=15_000)
    created = deployment.call().result
    deployment.clock.advance(20)
    deployment.work()
    ended = deployment.get(created["taskId"])
    for task in (created, ended):
        assert task["ttlMs"] == 600_000
        assert datetime.fromisoformat(task["createdAt"]).timestamp() == START
        assert task["createdAt"].endswith("Z")
        # The model is of the older form, which has the same fields under two other names.
        types.Task.model_validate({**task, "ttl": task["ttlMs"], "pollInterval": task["pollIntervalMs"]})
    assert created["lastUpdatedAt"] == created["createdAt"]
    assert datetime.fromisoformat(ended["lastUpdatedAt"]).timestamp() == START + 20
    assert (created["pollIntervalMs"], ended["pollIntervalMs"]) == (1000, 10_000)


def test_the_poll_interval_grows_with_the_age_of_the_task_up_to_a_limit() -> None:
    deployment = Deployment(tool(done), MemoryCallStore(), min_retry_ms=1000, max_retry_ms=5000)
    task_id = deployment.start()
    found = []
    for seconds in (0, 4, 4, 8):
        deployment.clock.advance(seconds)
        found.append(deployment.get(task_id)["pollIntervalMs"])
    assert found == [1000, 2000, 4000, 5000]


def test_a_task_id_has_at_least_128_random_bits_and_is_never_the_same_twice() -> None:
    deployment = Deployment(tool(done), MemoryCallStore())
    ids = {deployment.start() for _ in range(50)}
    assert len(ids) == 50
    assert min(len(set(call_id)) for call_id in deployment.queue.launched) > 8
    assert min(map(len, deployment.queue.launched)) >= 22  # base64 of 16 bytes


def test_the_message_of_the_latest_progress_is_the_status_message(store: CallStore) -> None:
    going_on = threading.Event()

    async def reports(ctx: Context[None]) -> str:
        await ctx.report_progress(1, 2, "half of it")
        await asyncio.to_thread(going_on.wait, SECONDS)
        return "all of it"

    deployment = Deployment(tool(reports), store)
    task_id = deployment.start()
    assert "statusMessage" not in deployment.get(task_id)
    worker = threading.Thread(target=deployment.work)
    worker.start()
    until(lambda: deployment.get(task_id).get("statusMessage") == "half of it")
    assert deployment.get(task_id)["status"] == "working"
    going_on.set()
    worker.join(SECONDS)
    assert text_of(deployment.get(task_id)["result"]) == "all of it"


# How a task ends


async def refuses() -> str:
    raise ToolError("There is nothing to be had")


async def breaks() -> str:
    raise KeyError("a secret")


async def fails() -> str:
    raise InternalError("The disk is full", {"disk": 1})


@pytest.mark.parametrize("fn", [refuses, breaks])
def test_a_tool_that_fails_has_completed_with_an_error_as_its_result(store: CallStore, fn: Any) -> None:
    deployment = Deployment(tool(fn), store)
    task_id = deployment.start()
    deployment.work()
    ended = deployment.get(task_id)
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert "error" not in ended
    assert "secret" not in str(ended)
    assert ("nothing to be had" in text_of(ended["result"])) == (fn is refuses)


def test_a_task_that_ends_with_a_protocol_error_has_failed(store: CallStore) -> None:
    deployment = Deployment(tool(fails), store)
    task_id = deployment.start()
    deployment.work()
    ended = deployment.get(task_id)
    assert (ended["status"], ended["statusMessage"]) == ("failed", "The disk is full")
    assert ended["error"] == {"code": -32603, "message": "The disk is full", "data": {"disk": 1}}
    assert "result" not in ended


def test_a_task_whose_worker_is_gone_has_failed_once_its_time_is_over(store: CallStore) -> None:
    deployment = Deployment(tool(done, timeout_seconds=60), store)
    task_id = deployment.start()
    call_id = deployment.queue.waiting.pop()
    asyncio.run(store.apply(call_id, Claim(), deployment.desk.now_ms()))
    deployment.clock.advance(69)
    assert deployment.get(task_id)["status"] == "working"
    deployment.clock.advance(2)
    ended = deployment.get(task_id)
    assert ended["status"] == "failed"
    assert types.ErrorData.model_validate(ended["error"]).message == ended["statusMessage"]
    assert "result" not in ended


def test_a_task_that_nobody_worked_on_is_launched_again_by_whoever_looks(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    deployment.queue.loses = True
    task_id = deployment.start()
    deployment.queue.loses = False
    deployment.clock.advance(29)
    deployment.get(task_id)
    assert deployment.work() == 0
    deployment.clock.advance(2)
    assert deployment.get(task_id)["status"] == "working"
    assert deployment.work() == 1
    assert deployment.get(task_id)["status"] == "completed"


async def talks() -> str:
    return "x" * 5000


def test_a_result_that_is_too_large_to_be_sent_says_so(store: CallStore) -> None:
    deployment = Deployment(tool(talks), store, max_event_bytes=4000)
    task_id = deployment.start()
    deployment.work()
    result = deployment.get(task_id)["result"]
    assert result["isError"]
    assert "4000 can be sent" in text_of(result)


class Small(MemoryCallStore):
    """A store that holds no outcome over a size."""

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        if isinstance(move, Finish) and len(move.outcome) > 1000:
            raise RecordTooLarge("too large")
        return await super().apply(call_id, move, now_ms)


def test_a_result_that_is_too_large_to_be_stored_says_so() -> None:
    deployment = Deployment(tool(talks), Small())
    task_id = deployment.start()
    deployment.work()
    result = deployment.get(task_id)["result"]
    assert result["isError"]
    assert "cannot be stored" in text_of(result)


def test_a_tool_that_takes_too_long_is_stopped_and_says_so(store: CallStore) -> None:
    async def sleeps() -> None:
        await asyncio.sleep(SECONDS)

    deployment = Deployment(tool(sleeps, timeout_seconds=1), store)
    task_id = deployment.start()
    deployment.work()
    result = deployment.get(task_id)["result"]
    assert result["isError"]
    assert "time limit of 1 s" in text_of(result)


# Steps


class Moody(MemoryCallStore):
    """A store that refuses the next writes of steps, with the errors in `moods`."""

    def __init__(self, *moods: Exception) -> None:
        super().__init__()
        self.moods = list(moods)

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        if self.moods and isinstance(move, RecordStep):
            raise self.moods.pop(0)
        return await super().apply(call_id, move, now_ms)


@pytest.mark.parametrize(
    ("moods", "told"),
    [
        ([StoreUnavailable("throttled")], "paid"),
        ([RecordTooLarge("400 KB")], "The value of the step 'pay' is too large to be kept"),
    ],
)
def test_a_step_is_written_down_as_soon_as_the_store_takes_it(moods: list[Exception], told: str) -> None:
    paid: list[int] = []

    def pay() -> str:
        paid.append(1)
        return "paid"

    async def pays(ctx: Context[None]) -> str:
        return str(await ctx.step("pay", pay))

    deployment = Deployment(tool(pays), Moody(*moods))
    task_id = deployment.start()
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == told
    assert paid == [1]


# Cancelling


def test_a_task_that_is_cancelled_before_it_starts_never_runs(store: CallStore) -> None:
    ran: list[int] = []

    async def runs() -> str:
        ran.append(1)
        return "ran"

    deployment = Deployment(tool(runs), store)
    task_id = deployment.start()
    acknowledged = deployment.task("cancel", task_id).result
    assert set(acknowledged) == {"resultType", "_meta"}
    assert acknowledged["resultType"] == "complete"
    deployment.work()
    assert ran == []
    ended = deployment.get(task_id)
    assert ended["status"] == "cancelled"
    assert not {"result", "error", "inputRequests"} & set(ended)


def test_a_task_that_is_cancelled_while_it_runs_is_stopped(store: CallStore) -> None:
    stopped = threading.Event()
    started = threading.Event()

    async def runs(ctx: Context[None]) -> str:
        started.set()
        try:
            for number in range(SECONDS * 100):
                await ctx.report_progress(number)
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            stopped.set()
            raise
        return "not stopped"

    deployment = Deployment(tool(runs), store)
    task_id = deployment.start()
    worker = threading.Thread(target=deployment.work)
    worker.start()
    assert started.wait(SECONDS)
    deployment.task("cancel", task_id)
    assert deployment.get(task_id)["status"] == "cancelled"
    worker.join(SECONDS)
    assert stopped.is_set()
    assert deployment.get(task_id)["status"] == "cancelled"


@pytest.mark.parametrize(("fn", "status"), [(done, "completed"), (fails, "failed")])
def test_cancelling_what_has_ended_is_acknowledged_and_changes_nothing(store: CallStore, fn: Any, status: str) -> None:
    deployment = Deployment(tool(fn), store)
    task_id = deployment.start()
    deployment.work()
    ended = deployment.get(task_id)
    for _ in range(2):
        assert deployment.task("cancel", task_id).result["resultType"] == "complete"
    assert deployment.get(task_id) == ended
    assert ended["status"] == status


def test_a_notification_of_cancellation_does_not_cancel_a_task(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    task_id = deployment.start()
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert deployment.door.post(cancelled, {"mcp-protocol-version": "2026-07-28"}).status == 202
    deployment.work()
    assert deployment.get(task_id)["status"] == "completed"


# A simple client, a worker thread


def test_the_kit_of_an_author_sees_a_task_end() -> None:
    settings = Settings.model_validate({"signing_keys": (KEY,), "polling": "memory"})
    server = MCPServer("kit", settings=settings)
    tool(done)(server)
    client = Client(server, protocol_version="2026-07-28", capabilities=TASKS)
    created: JsonObject = client.call_tool("tool").result
    headers = {"mcp-name": created["taskId"]}

    def get() -> JsonObject:
        return client.request("tasks/get", {"taskId": created["taskId"]}, headers)

    until(lambda: bool(get()["status"] == "completed"))
    assert get()["result"]["structuredContent"] == {"sum": 3}
