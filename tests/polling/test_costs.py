"""What a call costs, counted at the clients of AWS: requests to DynamoDB and asynchronous invocations of Lambda."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.testing import InProcess, InvokeApi
from tests.http.door import Door
from tests.polling.streams import stream
from tests.polling.world import KEY, SECONDS

CALL = ["PutItem", "Invoke", "UpdateItem", "UpdateItem"]
"""Taken in, started, claimed, finished."""


@dataclass(slots=True)
class Bill:
    """A server for requests and one for work, as a template deploys them, and what both have asked of AWS."""

    table: str
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.requests]

    def server(self, **settings: object) -> MCPServer:
        values = {
            "signing_keys": (KEY,),
            "polling": "dynamodb",
            "call_table": self.table,
            "worker_function": "worker",
            **settings,
        }
        server = MCPServer("bill", "1", settings=Settings.model_validate(values))

        @server.tool(long_running=True, structured_output=False)
        async def long(ctx: Context[None], size: int = 2_000, text: str = "") -> str:
            """Take long."""
            return "r" * size

        @server.tool()
        async def short() -> int:
            """Take no time."""
            return 1

        return server


@pytest.fixture
def bill(table: str, monkeypatch: pytest.MonkeyPatch) -> Bill:
    session, bill = boto3.Session(), Bill(table)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)

    def note(params: dict[str, Any], model: Any, **_: object) -> None:
        bill.requests.append((model.name, dict(params)))

    for service in ("dynamodb", "lambda"):
        session.events.register(f"provide-client-params.{service}", note)
    return bill


@pytest.fixture
def api(bill: Bill, monkeypatch: pytest.MonkeyPatch) -> Iterator[InvokeApi]:
    with InvokeApi(InProcess(bill.server().lambda_handler())) as api:
        for name, value in api.environment.items():
            monkeypatch.setenv(name, value)
        yield api


def test_a_small_call_costs_three_writes_one_invocation_and_one_query_a_poll(bill: Bill, api: InvokeApi) -> None:
    door = Door(bill.server().lambda_handler())
    begun = stream(door.call("long"))
    api.wait_until_idle(SECONDS)
    assert bill.operations == CALL
    for _ in range(3):
        assert stream(door.send("GET", headers={"last-event-id": begun.last_id})).text == "r" * 2_000
    assert bill.operations == [*CALL, "Query", "Query", "Query"]
    assert api.invocations == 1


# B79
def test_every_read_is_strongly_consistent_and_stays_in_one_partition(bill: Bill, api: InvokeApi) -> None:
    door = Door(bill.server().lambda_handler())
    begun = stream(door.call("long", {"size": 400_000, "text": "x" * 10_000}))
    api.wait_until_idle(SECONDS)
    assert stream(door.send("GET", headers={"last-event-id": begun.last_id})).text == "r" * 400_000
    queries = [params for operation, params in bill.requests if operation == "Query"]
    assert queries
    assert all(query["ConsistentRead"] is True and "IndexName" not in query for query in queries)
    assert all(query["KeyConditionExpression"].startswith("#pk = :pk AND ") for query in queries)
    assert set(bill.operations) == {"BatchWriteItem", "PutItem", "Invoke", "UpdateItem", "Query"}
    assert sum(name.endswith(("WriteItem", "PutItem", "UpdateItem")) for name in bill.operations) == 5


def test_the_work_event_carries_the_id_and_nothing_else(bill: Bill, api: InvokeApi) -> None:
    stream(Door(bill.server().lambda_handler()).call("long", {"text": "private"}))
    [invocation] = [params for operation, params in bill.requests if operation == "Invoke"]
    assert invocation["InvocationType"] == "Event"
    assert invocation["FunctionName"] == "worker"
    assert len(invocation["Payload"]) <= len('{"mcp_stateless.work":""}') + 22
    assert b"private" not in invocation["Payload"]


@pytest.mark.parametrize("params", [{"name": "short"}, {"name": "long"}])
def test_an_answer_in_json_costs_nothing(bill: Bill, api: InvokeApi, params: dict[str, Any]) -> None:
    door = Door(bill.server().lambda_handler())
    answer = door.legacy("tools/call", params, version="2025-06-18")
    assert answer.headers["content-type"] == "application/json"
    assert not answer.result["isError"]
    assert door.legacy("tools/list").status == 200
    assert door.send("GET", headers={"last-event-id": "forged"}).status == 400
    assert bill.operations == []


def test_a_client_token_and_a_cancellation_by_nobody_cost_nothing(bill: Bill, api: InvokeApi) -> None:
    door = Door(bill.server(client_token="always").lambda_handler())
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    assert "mcp-session-id" in door.legacy("initialize", handshake).headers
    door.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert bill.operations == []
