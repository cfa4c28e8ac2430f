"""What each step of a call costs in DynamoDB: requests, by operation, and the units that the engine counts."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import uuid4

import pytest

from mcp_stateless.calls.dynamodb import DynamoDBCallStore, make_client
from mcp_stateless.calls.record import (
    Answer,
    CallRecord,
    Cancel,
    Claim,
    Finish,
    MoveRefused,
    Park,
    Progress,
    RecordStep,
    Relaunch,
    Report,
    State,
)
from mcp_stateless.calls.store import entry_number
from tests.calls.engine import Engine
from tests.calls.samples import DUE, NOW, OUTCOME, PENDING, named

RESULT: Final = "r" * 2_000
PUT, UPDATE, BATCH, QUERY = "PutItem", "UpdateItem", "BatchWriteItem", "Query"


@dataclass
class Meter:
    """A store, and every request it made since the last reading."""

    store: DynamoDBCallStore
    operations: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    units: float = 0.0

    def cost(self, *steps: Awaitable[object]) -> tuple[list[str], float]:
        async def take() -> None:
            for step in steps:
                await step

        self.operations, self.units = [], 0.0
        asyncio.run(take())
        return self.operations, self.units

    def create(self, record: CallRecord) -> Awaitable[object]:
        return self.store.create(record)

    def claim(self, call_id: str) -> Awaitable[object]:
        return self.store.apply(call_id, Claim(), NOW)

    def finish(self, call_id: str, outcome: str = RESULT, attempt: int = 1) -> Awaitable[object]:
        return self.store.apply(call_id, Finish(attempt, State.COMPLETED, outcome), NOW)

    def poll(self, call_id: str, after: int = 0) -> Awaitable[object]:
        return self.store.read(call_id, after, NOW)


@pytest.fixture
def meter(table: str) -> Meter:
    client: Any = make_client()
    meter = Meter(DynamoDBCallStore(table, client))

    def ask_for_units(params: dict[str, Any], model: Any, **_: object) -> None:
        meter.operations.append(model.name)
        meter.requests.append(dict(params))
        params["ReturnConsumedCapacity"] = "TOTAL"

    def count_units(parsed: dict[str, Any], **_: object) -> None:
        consumed = parsed.get("ConsumedCapacity", [])
        for part in consumed if isinstance(consumed, list) else [consumed]:
            meter.units += part["CapacityUnits"]

    client.meta.events.register("provide-client-params.dynamodb", ask_for_units)
    client.meta.events.register("after-call.dynamodb", count_units)
    return meter


@pytest.fixture
def running(meter: Meter) -> str:
    """A call that a worker has claimed."""
    record = named(PENDING)
    meter.cost(meter.create(record), meter.claim(record.call_id))
    return record.call_id


def test_a_call_costs_three_writes(meter: Meter) -> None:
    record = named(PENDING)

    operations, units = meter.cost(meter.create(record), meter.claim(record.call_id), meter.finish(record.call_id))

    assert operations == [PUT, UPDATE, UPDATE]
    assert units == 5


def test_a_poll_costs_one_query_from_where_the_client_came_to(meter: Meter, running: str) -> None:
    meter.cost(*(meter.store.append(running, 1, n, [{"data": "x" * 200}]) for n in range(1, 21)))

    assert meter.cost(meter.poll(running, entry_number(1, 17))) == ([QUERY], 1)
    meter.cost(meter.finish(running))
    assert meter.cost(meter.poll(running, entry_number(1, 20))) == ([QUERY], 1)


@pytest.mark.parametrize(
    ("size", "writes", "pages"),
    [
        (350_000, [PUT, UPDATE, UPDATE], 1),
        (350_001, [PUT, UPDATE, BATCH, UPDATE], 1),
        (5_900_000, [PUT, UPDATE, BATCH, UPDATE], 8),
    ],
)
def test_a_long_result_costs_a_write_more_at_most_and_its_poll_a_query_for_each_megabyte(
    meter: Meter, size: int, writes: list[str], pages: int
) -> None:
    record = named(PENDING)

    operations, _ = meter.cost(
        meter.create(record), meter.claim(record.call_id), meter.finish(record.call_id, "x" * size)
    )

    assert operations == writes
    assert meter.cost(meter.poll(record.call_id))[0] == [QUERY] * pages


@pytest.mark.parametrize(("size", "write_units", "read_units"), [(350_000, 346, 86), (5_900_000, 5_781, 1_448)])
def test_a_long_result_costs_a_write_unit_a_kilobyte_and_a_quarter_of_that_to_read(
    engine: Engine, meter: Meter, size: int, write_units: int, read_units: int
) -> None:
    if engine.name == "ministack":
        pytest.skip("ministack counts one read unit a query, whatever its size")
    record = named(PENDING)

    _, written = meter.cost(meter.create(record), meter.claim(record.call_id), meter.finish(record.call_id, "x" * size))
    _, read = meter.cost(meter.poll(record.call_id))

    assert written == pytest.approx(write_units, abs=4)
    assert read == pytest.approx(read_units, abs=2)


@pytest.mark.parametrize("size", [2_049, 300_000, 5_900_000])
def test_long_arguments_cost_a_write_and_a_read_by_the_worker_and_polls_nothing(meter: Meter, size: int) -> None:
    record = named(replace(PENDING, arguments="x" * size))

    operations, _ = meter.cost(meter.create(record))
    claim, _ = meter.cost(meter.claim(record.call_id))
    finish, _ = meter.cost(meter.finish(record.call_id))

    assert operations == [BATCH, PUT]
    assert claim[:2] == [UPDATE, QUERY]
    assert len(claim) == 2 or size > 1_000_000
    assert set(claim[1:]) == {QUERY}
    assert finish == [UPDATE]
    assert meter.cost(meter.poll(record.call_id)) == ([QUERY], 1)


def test_both_long_cost_five_writes(meter: Meter) -> None:
    record = named(replace(PENDING, arguments="x" * 300_000))

    operations, _ = meter.cost(
        meter.create(record), meter.claim(record.call_id), meter.finish(record.call_id, "x" * 400_000)
    )

    assert operations == [BATCH, PUT, UPDATE, QUERY, BATCH, UPDATE]


def test_a_report_a_step_and_a_log_batch_cost_one_write_each(meter: Meter, running: str) -> None:
    progress = Progress(0.5, 1.0, "half of it", 1)

    assert meter.cost(meter.store.apply(running, Report(1, progress), NOW))[0] == [UPDATE]
    assert meter.cost(meter.store.apply(running, Report(1, None), NOW))[0] == [UPDATE]
    assert meter.cost(meter.store.apply(running, RecordStep(1, "step", {"value": 1}), NOW))[0] == [UPDATE]
    assert meter.cost(meter.store.append(running, 1, 1, [{"data": "x" * 500}])) == ([PUT], 1)


def test_questions_cost_two_writes_and_each_further_answer_one(meter: Meter) -> None:
    record = named(PENDING)
    one, two = "first", "second"
    store, id = meter.store, record.call_id

    operations, _ = meter.cost(
        store.create(record),
        store.apply(id, Claim(), NOW),
        store.apply(id, Park(1, {one: {"method": "ask"}, two: {"method": "ask"}}), NOW),
        store.apply(id, Answer(one, {"result": {}}, DUE), NOW),
        store.apply(id, Answer(two, {"result": {}}, DUE), NOW),
        store.apply(id, Claim(), NOW),
        meter.finish(id, attempt=2),
    )

    assert operations == [PUT] + [UPDATE] * 6


def test_a_relaunch_costs_one_write_and_so_does_a_cancel(meter: Meter) -> None:
    record = named(PENDING)
    meter.cost(meter.create(record))

    relaunch = meter.store.apply(record.call_id, Relaunch(0, record.due_ms, DUE + 1), NOW)
    assert meter.cost(relaunch)[0] == [UPDATE]
    assert meter.cost(meter.store.apply(record.call_id, Cancel(OUTCOME), NOW))[0] == [UPDATE]


def test_a_refusal_costs_its_write_and_no_read(meter: Meter, running: str) -> None:
    async def refused(move: Awaitable[object]) -> None:
        with pytest.raises(MoveRefused):
            await move

    assert meter.cost(refused(meter.claim(running)))[0] == [UPDATE]
    again = replace(PENDING, call_id=running)
    assert meter.cost(refused(meter.create(again)))[0] == [PUT]


def test_a_place_costs_a_write_to_take_and_one_to_give_back(meter: Meter) -> None:
    store, caller = meter.store, uuid4().hex
    meter.cost(store.admit(caller, "first", DUE, 2, NOW))

    assert meter.cost(store.admit(caller, "a", DUE, 2, NOW)) == ([UPDATE], 1)
    assert meter.cost(store.leave(caller, "a")) == ([UPDATE], 1)
    assert meter.cost(store.leave(caller, "first"))[0] == [UPDATE]
    assert meter.cost(store.admit(caller, "b", DUE, 2, NOW)) == ([UPDATE], 1)


def test_a_second_write_is_for_a_callers_first_call_and_for_places_past_their_time(meter: Meter) -> None:
    store, caller = meter.store, uuid4().hex

    assert meter.cost(store.admit(caller, "a", DUE, 1, NOW))[0] == [UPDATE] * 2
    assert meter.cost(store.admit(caller, "b", DUE + 1, 1, DUE))[0] == [UPDATE] * 2
    assert meter.cost(store.admit(caller, "c", DUE + 1, 1, DUE))[0] == [UPDATE]


def test_every_read_is_a_strongly_consistent_query_of_one_partition_without_an_index(meter: Meter) -> None:
    record = named(replace(PENDING, arguments="x" * 3_000))
    meter.cost(
        meter.create(record),
        meter.claim(record.call_id),
        meter.poll(record.call_id),
        meter.finish(record.call_id, "x" * 400_000),
        meter.poll(record.call_id),
    )

    reads = [request for request in meter.requests if "KeyConditionExpression" in request]
    assert len(reads) == 3
    for request in reads:
        assert request["ConsistentRead"] is True
        assert request["KeyConditionExpression"].startswith("#pk = :pk AND ")
        assert request["ExpressionAttributeValues"][":pk"] == {"S": f"c#{record.call_id}"}
        assert "IndexName" not in request
    assert set(meter.operations) <= {PUT, UPDATE, BATCH, QUERY}
