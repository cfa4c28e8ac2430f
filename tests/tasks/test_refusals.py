"""Who gets a task and who does not, and what is answered to those who ask for a task that is not theirs."""

import asyncio
from typing import Any

import pytest

from mcp_stateless import Context, MCPServer
from mcp_stateless.calls import tasks
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import CallRecord
from mcp_stateless.calls.store import CallStore, StoreMisconfigured, StoreUnavailable
from mcp_stateless.errors import InvalidParams
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.revisions import REVISIONS
from mcp_stateless.protocol.sealing import seal
from tests.http.door import JsonObject
from tests.tasks.deployment import FORMS, RING, TASKS, Deployment, LegacyClient, Unreadable, accept, text_of, tool

METHODS = pytest.mark.parametrize("method", ["get", "update", "cancel"])
NEEDED = {"requiredCapabilities": TASKS}
MALLORY = Principal("https://issuer.example", "Mallory")


async def done() -> str:
    """Work."""
    return "done"


async def named(ctx: Context[None]) -> str:
    """Ask."""
    return str((await ctx.elicit("Name?", {"type": "object", "properties": {"name": {"type": "string"}}})).action)


def deployed(**options: Any) -> Deployment:
    return Deployment(tool(done, **options), MemoryCallStore())


# Undeclared


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"tasks": {"requests": {"tools": {"call": {}}}}},
        {"extensions": {}},
        {"extensions": {"io.modelcontextprotocol/tasks": None}},
        {"extensions": {"io.modelcontextprotocol/other": {}}},
        {"extensions": []},
    ],
)
def test_a_request_that_does_not_declare_tasks_gets_none(capabilities: JsonObject) -> None:
    deployment = deployed()
    deployment.start()
    result = deployment.call(capabilities=capabilities).result
    assert result["resultType"] == "input_required"
    assert "taskId" not in result


def test_a_tool_that_only_runs_as_a_task_is_refused_to_who_does_not_declare_them() -> None:
    deployment = deployed(long_running="task")
    refused = deployment.call(capabilities=FORMS)
    assert (refused.status, refused.error["code"], refused.error["data"]) == (400, -32021, NEEDED)
    assert deployment.queue.launched == []
    assert deployment.call().result["resultType"] == "task"


@pytest.mark.parametrize("capabilities", [FORMS, {}])
def test_a_tool_that_may_be_a_task_runs_in_place_for_who_does_not_declare_them(capabilities: JsonObject) -> None:
    deployment = deployed(long_running="optional")
    result = deployment.call(capabilities=capabilities).result
    assert (result["resultType"], text_of(result)) == ("complete", "done")
    assert deployment.queue.launched == []
    assert deployment.call().result["resultType"] == "task"


def test_a_short_tool_is_never_a_task() -> None:
    result = deployed(long_running=False).call().result
    assert (result["resultType"], text_of(result)) == ("complete", "done")


def test_the_task_parameter_of_the_older_form_is_ignored() -> None:
    short = deployed(long_running=False)
    assert text_of(short.call(task={"ttl": 1000}).result) == "done"
    assert text_of(short.door.legacy("tools/call", {"name": "tool", "task": {"ttl": 1}}).result) == "done"
    created = deployed().call(task={"ttl": 1000}).result
    assert (created["resultType"], created["ttlMs"]) == ("task", 6 * 3600 * 1000)


@METHODS
@pytest.mark.parametrize("known", [True, False])
def test_who_does_not_declare_tasks_is_told_so_whether_or_not_the_task_exists(method: str, known: bool) -> None:
    deployment = deployed()
    task_id = deployment.start() if known else "unknown"
    refused = deployment.task(method, task_id, capabilities=FORMS, inputResponses={})
    assert (refused.status, refused.error["code"], refused.error["data"]) == (400, -32021, NEEDED)


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result", "tasks/delete"])
def test_there_are_no_other_methods_of_tasks(method: str) -> None:
    deployment = deployed()
    refused = deployment.door.modern(method, {"taskId": deployment.start()}, capabilities=TASKS)
    assert (refused.status, refused.error["code"]) == (404, -32601)


@METHODS
def test_without_long_calls_there_are_no_methods_of_tasks(method: str) -> None:
    server = MCPServer("short")
    server.tool("tool")(done)
    from tests.http.door import Door

    refused = Door(server.lambda_handler()).modern(f"tasks/{method}", {"taskId": "x"}, headers={"mcp-name": "x"})
    assert (refused.status, refused.error["code"]) == (404, -32601)


@METHODS
def test_clients_of_older_revisions_have_no_tasks(method: str) -> None:
    deployment = deployed()
    answer = deployment.door.legacy(f"tasks/{method}", {"taskId": deployment.start()})
    assert (answer.status, answer.error["code"]) == (200, -32601)


def test_a_tool_that_only_runs_as_a_task_says_so_to_clients_of_older_revisions() -> None:
    result = LegacyClient(deployed(long_running="task")).call().result
    assert result["isError"]
    assert "2026-07-28" in text_of(result)


# What is offered


def test_the_extension_is_offered_where_a_tool_can_be_long_and_the_older_capability_never() -> None:
    offers = [
        (deployed(), True),
        (deployed(long_running="optional"), True),
        (deployed(long_running="task"), True),
        (deployed(long_running=False, detaches=True), True),
        (deployed(long_running=False), False),
    ]
    for deployment, offered in offers:
        found = deployment.door.modern("server/discover").result["capabilities"]
        assert found.get("extensions", {}) == (TASKS["extensions"] if offered else {})
        assert "tasks" not in found


def test_the_extension_is_not_offered_without_a_place_for_long_calls() -> None:
    from tests.http.door import Door

    server = MCPServer("short")
    server.tool("tool", long_running=True)(done)
    assert "extensions" not in Door(server.lambda_handler()).modern("server/discover").result["capabilities"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_revisions_are_not_offered_tasks_of_any_form(version: str) -> None:
    params = {"protocolVersion": version, "capabilities": {"tasks": {}}, "clientInfo": {"name": "c", "version": "1"}}
    found = deployed().door.legacy("initialize", params, version=None).result["capabilities"]
    assert "tasks" not in found
    assert "extensions" not in found


# Ids that are not this caller's


def ids(deployment: Deployment) -> dict[str, str]:
    """Ids that open nothing: each is one step away from one that does."""
    task_id = deployment.start()
    call_id = deployment.queue.launched[-1]
    body = call_id.encode()
    expires_at = int(deployment.clock.now) + 3600
    anonymous = (Principal("", "").key,)
    return {
        "empty": "",
        "unknown": "AAAA",
        "the call's own": call_id,
        "cut": task_id[:-1],
        "longer": f"{task_id}A",
        "altered": task_id[:-2] + ("AA" if not task_id.endswith("AA") else "BB"),
        "of another caller": seal(RING, tasks.PURPOSE, body, bound_to=(MALLORY.key,), expires_at=expires_at),
        "for another purpose": seal(RING, "ticket", body, bound_to=anonymous, expires_at=expires_at),
        "expired": seal(RING, tasks.PURPOSE, body, bound_to=anonymous, expires_at=expires_at - 3600),
        "of no call": seal(RING, tasks.PURPOSE, b"x" * 22, bound_to=anonymous, expires_at=expires_at),
    }


def test_ids_that_open_nothing_are_all_told_the_same(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    told = {name: deployment.task("get", task_id) for name, task_id in ids(deployment).items()}
    assert {answer.status for answer in told.values()} == {200}
    assert {(answer.error["code"], answer.error["message"]) for answer in told.values()} == {(-32602, "Unknown task")}


@pytest.mark.parametrize("method", ["update", "cancel"])
def test_ids_that_are_not_sealed_for_the_caller_change_nothing(method: str, store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    for name, task_id in ids(deployment).items():
        answer = deployment.task(method, task_id, inputResponses={"name": accept()})
        if name != "of no call":
            assert (answer.error["code"], answer.error["message"]) == (-32602, "Unknown task"), name
    assert deployment.work() == 1


@METHODS
@pytest.mark.parametrize("task_id", [None, 5, ["x"], {}])
def test_ids_of_another_kind_are_unknown_as_well(method: str, task_id: object) -> None:
    assert deployed().task(method, task_id, inputResponses={}).error["code"] == -32602


@METHODS
def test_a_task_of_one_caller_is_unknown_to_another(method: str, store: CallStore) -> None:
    deployment = Deployment(tool(named), store)
    task_id = deployment.start()
    deployment.work()
    capabilities = TASKS
    params = {"taskId": task_id, "inputResponses": {"x": accept()}}
    call = Call(1, f"tasks/{method}", params, REVISIONS["2026-07-28"], client_capabilities=capabilities)
    before = deployment.get(task_id)
    with pytest.raises(InvalidParams, match="Unknown task"):
        asyncio.run(getattr(tasks, method)(deployment.desk, call, MALLORY))
    assert deployment.get(task_id) == before


@METHODS
def test_a_name_in_the_header_must_be_the_id(method: str) -> None:
    deployment = deployed()
    task_id = deployment.start()
    params = {"taskId": task_id, "inputResponses": {}}
    for headers in ({"mcp-name": "other"}, {"mcp-name": ""}, {"mcp-method": "tasks/other", "mcp-name": task_id}):
        refused = deployment.door.modern(f"tasks/{method}", params, capabilities=TASKS, headers=headers)
        assert (refused.status, refused.error["code"]) == (400, -32020)


@METHODS
def test_a_name_in_the_header_may_be_missing_as_it_is_with_most_clients(method: str) -> None:
    deployment = deployed()
    params = {"taskId": deployment.start(), "inputResponses": {}}
    answer = deployment.door.modern(f"tasks/{method}", params, capabilities=TASKS, headers={"mcp-name": None})
    assert answer.result["resultType"] == "complete"


# A handle only for what lies in the store


class Broken(MemoryCallStore):
    """A store that takes no new record; how many it was given."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.offered = 0

    async def create(self, record: CallRecord) -> None:
        self.offered += 1
        raise self.error


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), StoreMisconfigured("no such table")])
def test_without_a_record_there_is_no_task_but_an_error(error: Exception) -> None:
    store = Broken(error)
    deployment = Deployment(tool(done), store)
    refused = deployment.call()
    assert refused.error["code"] == -32603
    assert "throttled" not in str(refused.json)
    assert store.offered == 1
    assert deployment.queue.launched == []


def test_without_a_worker_there_is_no_task_but_an_error(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    deployment.queue.fails = True
    assert deployment.call().error["code"] == -32603


def test_a_task_that_cannot_be_read_now_is_not_unknown() -> None:
    store = Unreadable()
    deployment = Deployment(tool(done), store)
    task_id = deployment.start()
    store.down = True
    assert deployment.task("get", task_id).error["code"] == -32603
    store.down = False
    assert deployment.get(task_id)["status"] == "working"


def test_the_same_call_twice_is_two_tasks(store: CallStore) -> None:
    """Without a session nothing says that a request is a repeated one; `taskId` is the only handle."""
    deployment = Deployment(tool(done), store)
    assert deployment.start() != deployment.start()
    assert deployment.work() == 2


def test_a_task_outlives_its_time_to_live_only_as_unknown(store: CallStore) -> None:
    deployment = Deployment(tool(done), store, call_ttl_s=600)
    task_id = deployment.start()
    deployment.work()
    deployment.clock.advance(599)
    assert deployment.get(task_id)["status"] == "completed"
    deployment.clock.advance(1)
    assert deployment.task("get", task_id).error == {"code": -32602, "message": "Unknown task"}


def test_a_worker_that_is_reported_lost_fails_the_task_at_once(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    task_id = deployment.start()
    deployment.fail_work()
    assert deployment.get(task_id)["status"] == "failed"
