"""What every store promises, on each of them; and what only one of them has."""

import asyncio
import json
import random
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.httpsession import URLLib3Session
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_stateless.calls import record as model
from mcp_stateless.calls.dynamodb import Client, DynamoDBCallStore, Response, make_client
from mcp_stateless.calls.items import Item
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import (
    Answer,
    CallRecord,
    Cancel,
    Claim,
    Fail,
    Finish,
    Move,
    MoveRefused,
    Park,
    RecordStep,
    Relaunch,
    Report,
    State,
)
from mcp_stateless.calls.store import (
    MAX_TEXT_BYTES,
    CallStore,
    RecordTooLarge,
    StoreMisconfigured,
    StoreUnavailable,
    entry_number,
)
from tests.calls.engine import Engine
from tests.calls.samples import ASKING, AWKWARD, DUE, MOVES, NOW, OUTCOME, PENDING, PRINCIPAL, RECORDS, RUNNING, named

run = asyncio.run
Outcome = tuple[str, CallRecord | None]
RACES: Final = 20


async def carried_out(store: CallStore, call_id: str, move: Move, now_ms: int = NOW) -> Outcome:
    try:
        return "allowed", await store.apply(call_id, move, now_ms)
    except MoveRefused as refused:
        return "refused", refused.record


def expected(record: CallRecord, move: Move, now_ms: int = NOW) -> Outcome:
    try:
        return "allowed", model.apply(record, move, now_ms)
    except MoveRefused as refused:
        return "refused", refused.record


async def read_record(store: CallStore, call_id: str, now_ms: int = NOW) -> CallRecord | None:
    snapshot = await store.read(call_id, 0, now_ms)
    return None if snapshot is None else snapshot.record


def at_once(count: int, act: Callable[[int], Awaitable[object]]) -> list[object]:
    """What `act` returns or raises in `count` threads, each with an event loop, that start together."""
    start = threading.Barrier(count)

    def run_one(index: int) -> object:
        async def one() -> object:
            start.wait(10)
            try:
                return await act(index)
            except MoveRefused as refused:
                return refused

        return asyncio.run(one())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # or a store in memory is done before the next thread starts
    try:
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(run_one, range(count)))
    finally:
        sys.setswitchinterval(interval)


def moved_at_once(store: CallStore, call_id: str, moves: Sequence[Move]) -> list[object]:
    return at_once(len(moves), lambda n: store.apply(call_id, moves[n], NOW))


@pytest.mark.parametrize("name", RECORDS)
def test_every_move_does_to_every_record_what_the_model_does(store: CallStore, name: str) -> None:
    async def try_all() -> None:
        for move in MOVES:
            record = named(RECORDS[name])
            await store.create(record)
            verdict, after = await carried_out(store, record.call_id, move)
            assert (verdict, after) == expected(record, move), move
            left = after if verdict == "allowed" or after is None else record
            assert await read_record(store, record.call_id) == left, move

    run(try_all())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(MOVES), st.integers(NOW, DUE + 400_000)), max_size=12))
def test_any_run_of_moves_ends_as_in_the_model(dynamodb: DynamoDBCallStore, steps: list[tuple[Move, int]]) -> None:
    async def walk() -> None:
        record = named(replace(PENDING, max_attempts=2))
        stores = (MemoryCallStore(), dynamodb)
        for store in stores:
            await store.create(record)
        for move, now_ms in steps:
            wanted = expected(record, move, now_ms)
            for store in stores:
                assert await carried_out(store, record.call_id, move, now_ms) == wanted
            record = wanted[1] or record
        for store in stores:
            assert await read_record(store, record.call_id) == record

    run(walk())


def test_a_second_record_with_an_id_is_refused_with_the_first(store: CallStore) -> None:
    first = named(PENDING)
    run(store.create(first))

    with pytest.raises(MoveRefused) as refused:
        run(store.create(replace(first, arguments='{"other":1}')))

    assert refused.value.record == first
    assert run(read_record(store, first.call_id)) == first


def test_a_call_that_is_not_there_is_none_and_moves_nowhere(store: CallStore) -> None:
    assert run(store.read("unknown", 0, NOW)) is None
    for move in MOVES:
        assert run(carried_out(store, "unknown", move)) == ("refused", None)
    assert run(store.read("unknown", 0, NOW)) is None


def test_an_expired_call_is_gone_but_its_id_stays_taken(store: CallStore) -> None:
    record = named(PENDING)
    run(store.create(record))

    assert run(store.read(record.call_id, 0, record.until_ms - 1)) is not None
    assert run(store.read(record.call_id, 0, record.until_ms)) is None
    assert run(carried_out(store, record.call_id, Claim(), record.until_ms)) == ("refused", None)
    with pytest.raises(MoveRefused) as refused:
        run(store.create(replace(record, created_ms=record.until_ms, until_ms=record.until_ms + 60_000)))
    assert refused.value.record is None


def test_json_comes_back_as_it_was_given(store: CallStore) -> None:
    text = json.dumps(AWKWARD)
    record = named(replace(PENDING, arguments=text))

    async def fill() -> None:
        await store.create(record)
        await store.apply(record.call_id, Claim(), NOW)
        await store.append(record.call_id, 1, 1, [AWKWARD, {}])
        await store.apply(record.call_id, RecordStep(1, "step", AWKWARD), NOW)
        await store.apply(record.call_id, Park(1, {"question": AWKWARD}), NOW)
        await store.apply(record.call_id, Answer("question", AWKWARD, DUE), NOW)
        await store.apply(record.call_id, Claim(), NOW)
        await store.apply(record.call_id, Finish(2, State.COMPLETED, text), NOW)

    run(fill())
    snapshot = run(store.read(record.call_id, 0, NOW))

    assert snapshot is not None
    after = snapshot.record
    assert (after.arguments, after.outcome) == (text, text)
    for value in (after.steps["step"], after.questions["question"], after.answers["question"]):
        assert json.dumps(value) == text
    assert json.dumps(list(snapshot.entries[0].messages)) == f"[{text}, {{}}]"
    caller = after.request.principal
    assert (caller.client_id, caller.scopes, caller.claims) == (PRINCIPAL.client_id, PRINCIPAL.scopes, PRINCIPAL.claims)


@pytest.mark.parametrize("size", [2_048, 2_049, 300_000, 400_000, 1_000_000, MAX_TEXT_BYTES])
def test_a_worker_gets_long_arguments_with_its_claim(store: CallStore, size: int) -> None:
    record = named(replace(PENDING, arguments="x" * size))
    run(store.create(record))

    claimed = run(store.apply(record.call_id, Claim(), NOW))

    assert claimed == model.apply(record, Claim(), NOW)


@pytest.mark.parametrize("size", [0, 349_999, 350_001, 390_000, 410_000, 5_000_000, MAX_TEXT_BYTES])
@pytest.mark.parametrize("letter", ["random", "é", "語", "😀"])
def test_a_long_outcome_comes_back_whole_wherever_the_reader_came_to(store: CallStore, size: int, letter: str) -> None:
    text = (
        random.Random(size).randbytes(size // 2).hex()
        if letter == "random"
        else ("x" + letter * (size // 4 - 1))[:size]
    )
    record = named(RUNNING)
    run(store.create(record))
    run(store.append(record.call_id, 1, 1, [{"n": 1}]))

    run(store.apply(record.call_id, Finish(1, State.COMPLETED, text), NOW))

    for after, batches in ((0, 1), (entry_number(1, 1), 0)):
        snapshot = run(store.read(record.call_id, after, NOW))
        assert snapshot is not None
        assert snapshot.record.outcome == text
        assert len(snapshot.entries) == batches


@pytest.mark.parametrize("padding", [0, 400_000])
def test_a_lone_surrogate_in_a_text_means_the_same_when_it_comes_back(store: CallStore, padding: int) -> None:
    text = json.dumps({"text": "\\\ud800" + "x" * padding}, ensure_ascii=False)
    record = named(replace(PENDING, arguments=text))
    run(store.create(record))

    claimed = run(store.apply(record.call_id, Claim(), NOW))
    run(store.apply(record.call_id, Finish(1, State.COMPLETED, text), NOW))
    after = run(read_record(store, record.call_id))

    assert json.loads(claimed.arguments) == json.loads(text)
    assert after is not None
    assert after.outcome is not None
    assert json.loads(after.outcome) == json.loads(text)


def test_a_refusal_by_a_call_with_a_long_outcome_carries_it(store: CallStore) -> None:
    record = named(RUNNING)
    run(store.create(record))
    done = run(store.apply(record.call_id, Finish(1, State.COMPLETED, "x" * 400_000), NOW))

    assert run(carried_out(store, record.call_id, Cancel(OUTCOME))) == ("refused", done)


@pytest.mark.parametrize("end", [Finish(1, State.COMPLETED, "é" * (MAX_TEXT_BYTES // 2 + 1)), Cancel("é" * 3_000_000)])
def test_an_outcome_that_cannot_be_held_changes_nothing(store: CallStore, end: Move) -> None:
    record = named(RUNNING)
    run(store.create(record))

    with pytest.raises(RecordTooLarge, match=str(MAX_TEXT_BYTES)):
        run(store.apply(record.call_id, end, NOW))

    assert run(read_record(store, record.call_id)) == record
    assert run(carried_out(store, record.call_id, Finish(1, State.FAILED, OUTCOME)))[0] == "allowed"


def test_arguments_that_cannot_be_held_make_no_record(store: CallStore) -> None:
    record = named(replace(PENDING, arguments="x" * (MAX_TEXT_BYTES + 1)))

    with pytest.raises(RecordTooLarge):
        run(store.create(record))

    assert run(store.read(record.call_id, 0, NOW)) is None


def test_batches_of_one_millisecond_come_back_in_order_and_from_where_the_reader_came_to(store: CallStore) -> None:
    record = named(replace(RUNNING, attempt=2))
    run(store.create(record))

    async def append() -> None:
        for attempt in (2, 1):
            order = list(range(1, 13))
            random.Random(attempt).shuffle(order)
            await asyncio.gather(
                *(store.append(record.call_id, attempt, n, [{"attempt": attempt, "n": n}]) for n in order)
            )

    run(append())
    everything = run(store.read(record.call_id, 0, NOW))
    rest = run(store.read(record.call_id, entry_number(2, 10), NOW))

    assert everything is not None
    assert rest is not None
    wanted = [{"attempt": attempt, "n": n} for attempt in (1, 2) for n in range(1, 13)]
    assert [message for entry in everything.entries for message in entry.messages] == wanted
    assert [entry.number for entry in rest.entries] == [entry_number(2, 11), entry_number(2, 12)]
    assert everything.record == rest.record == record


def test_of_twelve_claims_at_once_one_wins(store: CallStore) -> None:
    for _ in range(RACES):
        record = named(replace(PENDING, max_attempts=3))
        run(store.create(record))

        results = moved_at_once(store, record.call_id, [Claim()] * 12)

        assert sum(isinstance(result, CallRecord) for result in results) == 1
        after = run(read_record(store, record.call_id))
        assert after == model.apply(record, Claim(), NOW)


def test_of_twelve_records_with_one_id_one_is_put_and_the_others_learn_which(store: CallStore) -> None:
    record = named(PENDING)
    long = "x" * 3_000

    results = at_once(12, lambda n: store.create(replace(record, arguments=f"{n:02}{long}")))

    (winner,) = (n for n, result in enumerate(results) if result is None)
    claimed = run(store.apply(record.call_id, Claim(), NOW))
    assert claimed.arguments == f"{winner:02}{long}"


def test_a_cancel_and_a_finish_at_once_have_one_winner(store: CallStore) -> None:
    finish, cancel = Finish(1, State.COMPLETED, '"done"'), Cancel('"cancelled"')
    for _ in range(RACES):
        record = named(RUNNING)
        run(store.create(record))

        results = moved_at_once(store, record.call_id, [finish, cancel])

        (winner,) = (n for n, result in enumerate(results) if isinstance(result, CallRecord))
        after = run(read_record(store, record.call_id))
        assert after == model.apply(record, (finish, cancel)[winner], NOW)


def test_of_three_answers_to_two_questions_two_are_kept_and_one_sees_that_none_is_open(store: CallStore) -> None:
    first, second = ASKING.questions
    answers = (Answer(first, {"result": 1}, DUE), Answer(first, {"result": 2}, DUE), Answer(second, {"result": 3}, DUE))
    for _ in range(RACES):
        record = named(ASKING)
        run(store.create(record))

        results = moved_at_once(store, record.call_id, answers)

        kept = [result for result in results if isinstance(result, CallRecord)]
        assert sorted(result.open for result in kept) == [0, 1]
        after = run(read_record(store, record.call_id))
        assert after is not None
        assert after.answers.keys() == record.questions.keys()


def test_a_lost_worker_that_comes_back_cannot_change_the_result_of_the_next(store: CallStore) -> None:
    record = named(replace(RUNNING, due_ms=NOW - 1, max_attempts=2))
    zombie = Finish(1, State.COMPLETED, "z" * 400_000)
    run(store.create(record))
    run(store.apply(record.call_id, Relaunch(1, NOW - 1, DUE), NOW))
    second = run(store.apply(record.call_id, Claim(), NOW))

    assert run(carried_out(store, record.call_id, zombie)) == ("refused", second)
    done = run(store.apply(record.call_id, Finish(2, State.COMPLETED, "s" * 400_000), NOW))
    assert run(carried_out(store, record.call_id, zombie)) == ("refused", done)
    assert run(read_record(store, record.call_id)) == done


def admitted(
    store: CallStore, caller: str, *call_ids: str, most: int = 3, now_ms: int = NOW, until_ms: int = DUE
) -> list[bool]:
    """Whether each of some calls, one after another, gets a place."""

    async def admit() -> list[bool]:
        return [await store.admit(caller, call_id, until_ms, most, now_ms) for call_id in call_ids]

    return run(admit())


def test_a_caller_has_so_many_places_and_one_that_is_given_back_is_free(store: CallStore) -> None:
    caller = uuid4().hex
    assert admitted(store, caller, "a", "b", "c", "d") == [True, True, True, False]

    run(store.leave(caller, "b"))

    assert admitted(store, caller, "e", "b") == [True, False]


def test_every_caller_has_places_of_its_own(store: CallStore) -> None:
    one, other = uuid4().hex, uuid4().hex
    assert admitted(store, one, "a", "b", most=1) == [True, False]

    run(store.leave(other, "a"))

    assert admitted(store, other, "a", "b", most=1) == [True, False]
    assert admitted(store, one, "b", most=1) == [False]


def test_a_call_that_has_a_place_takes_no_second_one_and_keeps_it_for_the_new_time(store: CallStore) -> None:
    caller = uuid4().hex
    assert admitted(store, caller, "a", "b", "a", "b", "a", most=2) == [True] * 5
    assert admitted(store, caller, "a", most=2, until_ms=DUE + 1) == [True]

    assert admitted(store, caller, "c", "d", most=2, now_ms=DUE, until_ms=DUE + 1) == [True, False]


def test_a_place_past_its_time_is_free(store: CallStore) -> None:
    caller = uuid4().hex
    assert admitted(store, caller, "a", "b", "c") == [True] * 3
    assert admitted(store, caller, "d", now_ms=DUE - 1) == [False]

    later = admitted(store, caller, "d", "e", "f", "g", now_ms=DUE, until_ms=DUE + 1)

    assert later == [True, True, True, False]


def test_a_lower_cap_lets_nobody_in_before_enough_have_left(store: CallStore) -> None:
    caller = uuid4().hex
    admitted(store, caller, "a", "b", "c")

    assert admitted(store, caller, "d", most=2) == [False]
    run(store.leave(caller, "a"))
    assert admitted(store, caller, "d", "b", most=2) == [False, True]
    run(store.leave(caller, "b"))
    assert admitted(store, caller, "d", most=2) == [True]


@pytest.mark.parametrize("before", ["nobody", "calls that have left", "calls past their time"])
def test_of_twelve_calls_at_once_as_many_are_let_in_as_there_are_places(store: CallStore, before: str) -> None:
    async def let_in(caller: str, count: int) -> object:
        return await store.admit(caller, f"new-{count}", DUE + 1, 3, DUE)

    for _ in range(RACES):
        caller = uuid4().hex
        if before != "nobody":
            assert admitted(store, caller, "a", "b", "c") == [True] * 3
        if before == "calls that have left":
            for name in ("a", "b", "c"):
                run(store.leave(caller, name))

        outcomes = at_once(12, partial(let_in, caller))

        assert sorted(outcomes, key=str) == [False] * 9 + [True] * 3
        assert admitted(store, caller, "later", now_ms=DUE, until_ms=DUE + 1) == [False]


def test_a_call_that_comes_while_another_leaves_is_decided_one_way_or_the_other(store: CallStore) -> None:
    async def come_or_go(caller: str, index: int) -> object:
        return await (store.leave(caller, "a") if index else store.admit(caller, "b", DUE, 1, NOW))

    for _ in range(RACES):
        caller = uuid4().hex
        admitted(store, caller, "a", most=1)

        came, _ = at_once(2, partial(come_or_go, caller))

        assert admitted(store, caller, "c", most=1) == [not came]


def test_what_is_done_to_a_value_outside_does_not_reach_the_store(store: CallStore) -> None:
    numbers = [1]
    record = named(RUNNING)
    run(store.create(record))
    run(store.append(record.call_id, 1, 1, [{"list": numbers}]))
    returned = run(store.apply(record.call_id, RecordStep(1, "step", {"list": numbers}), NOW))

    numbers.append(2)
    returned.steps["step"]["list"] = []

    after = run(store.read(record.call_id, 0, NOW))
    assert after is not None
    assert after.record.steps == {"step": {"list": [1]}}
    assert after.entries[0].messages == [{"list": [1]}]


# Only in memory


def test_memory_forgets_the_calls_that_ended_first_and_none_that_still_runs() -> None:
    store = MemoryCallStore(max_finished=2)
    running = named(RUNNING)
    ended = [named(RECORDS["completed"]) for _ in range(4)]
    for record in (running, *ended):
        run(store.create(record))

    kept = [run(store.read(record.call_id, 0, NOW)) is not None for record in (running, *ended)]

    assert kept == [True, False, False, True, True]


def test_memory_takes_no_log_for_a_call_it_does_not_know() -> None:
    store = MemoryCallStore()
    run(store.append("unknown", 1, 1, [{}]))
    assert run(store.read("unknown", 0, NOW)) is None


# Only in DynamoDB


def items_of(table: str, call_id: str) -> list[dict[str, Any]]:
    condition = {":pk": {"S": f"c#{call_id}"}}
    found = make_client().query(TableName=table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues=condition)
    items: list[dict[str, Any]] = found["Items"]
    return items


def change(client: Client, table: str, call_id: str, **attributes: dict[str, str]) -> None:
    """Change a head behind the store's back."""
    names = {f"#{name}": name for name in attributes}
    client.update_item(
        TableName=table,
        Key={"pk": {"S": f"c#{call_id}"}, "sk": {"N": str(10**15)}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={f":{name}": value for name, value in attributes.items()},
    )


def test_every_item_has_a_ttl_in_whole_seconds_that_is_no_earlier_than_the_record_is_gone(table: str) -> None:
    store = DynamoDBCallStore(table, lifetime_s=7_200, clock=lambda: NOW / 1000)
    record = named(replace(RUNNING, arguments="x" * 3_000, until_ms=PENDING.until_ms + 1))
    run(store.create(record))
    run(store.append(record.call_id, 1, 1, [{}]))
    run(store.apply(record.call_id, Finish(1, State.COMPLETED, "x" * 400_000), NOW))

    items = items_of(table, record.call_id)

    *beside, head = items
    assert head["ttl"] == {"N": str(PENDING.until_ms // 1000 + 1)}
    assert [item["ttl"] for item in beside] == [{"N": str(NOW // 1000 + 7_200)}] * 4


def test_a_move_after_the_items_were_deleted_creates_nothing(table: str, dynamodb: DynamoDBCallStore) -> None:
    for move in MOVES:
        assert run(carried_out(dynamodb, "deleted", move)) == ("refused", None)
    assert items_of(table, "deleted") == []


def test_leaving_where_nobody_came_in_creates_nothing(table: str, dynamodb: DynamoDBCallStore) -> None:
    caller = uuid4().hex
    run(dynamodb.leave(caller, "a"))
    assert places_item(table, caller) is None

    admitted(dynamodb, caller, "a")
    before = places_item(table, caller)
    run(dynamodb.leave(caller, "b"))
    assert places_item(table, caller) == before


def test_the_places_of_a_caller_are_one_item_that_expires(table: str) -> None:
    caller, store = uuid4().hex, DynamoDBCallStore(table, lifetime_s=7_200, clock=lambda: NOW / 1000)
    admitted(store, caller, "a", "b", "c", most=2)

    assert places_item(table, caller) == {
        "pk": {"S": f"p#{caller}"},
        "sk": {"N": "0"},
        "open": {"M": {"a": {"N": str(DUE)}, "b": {"N": str(DUE)}}},
        "ttl": {"N": str(NOW // 1000 + 7_200)},
    }


def places_item(table: str, caller: str) -> Item | None:
    key = {"pk": {"S": f"p#{caller}"}, "sk": {"N": "0"}}
    found: Item | None = boto3.client("dynamodb").get_item(TableName=table, Key=key).get("Item")
    return found


@pytest.mark.parametrize("has_places", [False, True])
def test_a_call_whose_admission_was_not_answered_is_let_in_when_it_is_sent_again(table: str, has_places: bool) -> None:
    client, caller = make_client(), uuid4().hex
    store = DynamoDBCallStore(table, client)
    if has_places:
        run(store.admit(caller, "before", NOW, 1, NOW - 1))
        run(store.leave(caller, "before"))
    sent = lose_answers(client, "UpdateItem", of=1 if has_places else 2)

    assert admitted(store, caller, "a", most=1) == [True]

    assert len(sent) > 1
    assert admitted(store, caller, "b", most=1) == [False]


def test_places_that_change_under_every_write_are_an_error_of_the_contract() -> None:
    def refusal() -> ClientError:
        return refused_by_service("ConditionalCheckFailedException")

    with pytest.raises(StoreUnavailable, match="change too fast"):
        run(DynamoDBCallStore("calls", Stub(*[refusal()] * 8)).admit("caller", "a", DUE, 1, NOW))


def test_a_record_of_another_version_is_gone_and_left_alone(table: str, dynamodb: DynamoDBCallStore) -> None:
    record = named(RUNNING)
    run(dynamodb.create(record))
    change(make_client(), table, record.call_id, schema={"N": "2"})
    before = items_of(table, record.call_id)

    assert run(dynamodb.read(record.call_id, 0, NOW)) is None
    for move in (Report(1, None), Cancel(OUTCOME)):
        assert run(carried_out(dynamodb, record.call_id, move)) == ("refused", None)
    with pytest.raises(MoveRefused) as refused:
        run(dynamodb.create(record))
    assert refused.value.record is None
    assert items_of(table, record.call_id) == before


def test_a_refused_move_leaves_no_parts_of_its_long_text_behind(table: str, dynamodb: DynamoDBCallStore) -> None:
    record = named(RUNNING)
    run(dynamodb.create(record))

    run(carried_out(dynamodb, record.call_id, Finish(7, State.COMPLETED, "x" * 1_000_000)))
    with pytest.raises(MoveRefused):
        run(dynamodb.create(replace(record, arguments="x" * 1_000_000)))

    assert [item["sk"] for item in items_of(table, record.call_id)] == [{"N": str(10**15)}]


@pytest.mark.parametrize(
    "end",
    [Finish(1, State.COMPLETED, "x" * 350_000), Fail(1, DUE, OUTCOME), Cancel(OUTCOME)],
    ids=["finish", "fail", "cancel"],
)
def test_a_call_whose_record_is_full_can_still_end(dynamodb: DynamoDBCallStore, end: Finish | Fail | Cancel) -> None:
    record = named(RUNNING)
    run(dynamodb.create(record))
    for size in (100_000, 10_000, 1_000, 100, 10, 0):
        number, is_full = 0, False
        while not is_full:
            try:
                run(dynamodb.apply(record.call_id, RecordStep(1, f"{size}-{number}", {"": "x" * size}), NOW))
            except RecordTooLarge:
                is_full = True
            number += 1

    run(dynamodb.apply(record.call_id, end, NOW))

    snapshot = run(dynamodb.read(record.call_id, 0, NOW))
    assert snapshot is not None
    assert snapshot.record.state.is_final
    assert snapshot.record.outcome == end.outcome


@pytest.mark.parametrize(
    "move",
    [
        RecordStep(1, "step", {"text": "x" * 420_000}),
        RecordStep(1, "é" * 210_000, {}),
        Park(1, {"question": {"text": "x" * 420_000}}),
        Park(1, {str(n): {} for n in range(101)}),
    ],
    ids=["step", "name of a step", "question", "101 questions"],
)
def test_what_does_not_fit_into_the_record_changes_nothing(dynamodb: DynamoDBCallStore, move: Move) -> None:
    record = named(RUNNING)
    run(dynamodb.create(record))

    with pytest.raises(RecordTooLarge):
        run(dynamodb.apply(record.call_id, move, NOW))

    assert run(read_record(dynamodb, record.call_id)) == record


def test_a_log_batch_that_does_not_fit_is_refused(dynamodb: DynamoDBCallStore) -> None:
    with pytest.raises(RecordTooLarge):
        run(dynamodb.append("call", 1, 1, [{"data": "x" * 420_000}]))


def test_a_hundred_questions_at_once_are_asked(dynamodb: DynamoDBCallStore) -> None:
    record = named(RUNNING)
    run(dynamodb.create(record))
    park = Park(1, {f"question {n}": {"n": n} for n in range(100)})

    assert run(carried_out(dynamodb, record.call_id, park)) == expected(record, park)


def lose_answers(client: Any, operation: str, of: int = 1) -> list[str]:
    """Let the `of`th request of an operation be carried out and its answer be lost. Grows by each that is sent."""
    sent: list[str] = []

    def send(request: Any, **_: object) -> None:
        sent.append(request.url)
        if len(sent) == of:
            URLLib3Session().send(request)
            raise ReadTimeoutError(endpoint_url=request.url)

    client.meta.events.register(f"before-send.dynamodb.{operation}", send)
    return sent


def test_a_move_whose_answer_was_lost_is_not_refused_when_it_is_sent_again(table: str) -> None:
    client = make_client()
    store = DynamoDBCallStore(table, client)
    record = named(replace(PENDING, arguments="x" * 3_000))
    run(store.create(record))
    sent = lose_answers(client, "UpdateItem")

    claimed = run(store.apply(record.call_id, Claim(), NOW))

    assert len(sent) == 2
    assert claimed == model.apply(record, Claim(), NOW)


def test_a_record_whose_answer_was_lost_is_not_refused_when_it_is_sent_again(table: str) -> None:
    client = make_client()
    record = named(PENDING)
    sent = lose_answers(client, "PutItem")

    run(DynamoDBCallStore(table, client).create(record))

    assert len(sent) == 2


class Stub:
    """A client whose answers are at hand, in order; an exception is raised. It notes what it was asked."""

    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def put_item(self, **request: object) -> Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    update_item = batch_write_item = query = put_item


def refused_by_service(code: str, status: int = 400, message: str = "") -> ClientError:
    text = message or "User: arn:aws:sts::123456789012:assumed-role/r is not authorized on arn:aws:dynamodb:table/calls"
    response = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "UpdateItem")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused_by_service("ThrottlingException"), StoreUnavailable),
        (refused_by_service("ProvisionedThroughputExceededException"), StoreUnavailable),
        (refused_by_service("RequestLimitExceeded"), StoreUnavailable),
        (refused_by_service("InternalServerError", 500), StoreUnavailable),
        (refused_by_service("ServiceUnavailable", 503), StoreUnavailable),
        (ReadTimeoutError(endpoint_url="https://dynamodb.example"), StoreUnavailable),
        (ConnectTimeoutError(endpoint_url="https://dynamodb.example"), StoreUnavailable),
        (EndpointConnectionError(endpoint_url="https://dynamodb.example"), StoreUnavailable),
        (refused_by_service("ValidationException", message="Item size has exceeded the maximum"), RecordTooLarge),
        (refused_by_service("ValidationException", message="The provided key is wrong"), StoreMisconfigured),
        (refused_by_service("ResourceNotFoundException"), StoreMisconfigured),
        (refused_by_service("AccessDeniedException"), StoreMisconfigured),
        (refused_by_service("UnrecognizedClientException"), StoreMisconfigured),
        (NoCredentialsError(), StoreMisconfigured),
        (BotoCoreError(), StoreMisconfigured),
    ],
    ids=str,
)
def test_what_the_service_raises_becomes_an_error_of_the_contract_without_its_text(
    error: Exception, kind: type[Exception]
) -> None:
    async def every_request(store: CallStore) -> Sequence[object]:
        requests = (
            store.create(PENDING),
            store.apply("call", Claim(), NOW),
            store.append("call", 1, 1, []),
            store.read("call", 0, NOW),
            store.admit("caller", "call", DUE, 1, NOW),
            store.leave("caller", "call"),
        )
        return await asyncio.gather(*requests, return_exceptions=True)

    for raised in run(every_request(DynamoDBCallStore("calls", Stub(*[error] * 6)))):
        assert isinstance(raised, kind)
        assert "arn:" not in str(raised)
        assert kind is RecordTooLarge or "'calls'" in str(raised)


def test_a_table_that_is_not_there_is_named(dynamodb: DynamoDBCallStore) -> None:
    with pytest.raises(StoreMisconfigured, match=r"'no-such-table'.*deploy it"):
        run(DynamoDBCallStore("no-such-table").read("call", 0, NOW))


def test_without_a_region_no_client_is_made(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.delenv("AWS_REGION", raising=False)

    with pytest.raises(StoreMisconfigured, match="AWS_DEFAULT_REGION"):
        make_client()


def test_parts_that_dynamodb_does_not_take_at_once_are_sent_again() -> None:
    def left(count: int) -> Response:
        return {"UnprocessedItems": {"calls": [{"PutRequest": {}}] * count} if count else {}}

    client = Stub(left(2), refused_by_service("ThrottlingException"), left(0), {})
    run(DynamoDBCallStore("calls", client).create(replace(PENDING, arguments="x" * 1_000_000)))

    assert [len(asked["RequestItems"]["calls"]) for asked in client.asked[:-1]] == [3, 2, 2]


def test_parts_that_dynamodb_never_takes_make_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_stateless.calls.dynamodb.BATCH_PAUSE_SECONDS", 0)
    client = Stub(*[{"UnprocessedItems": {"calls": [{}]}}] * 20)

    with pytest.raises(StoreUnavailable, match="throttles"):
        run(DynamoDBCallStore("calls", client).create(replace(PENDING, arguments="x" * 3_000)))

    assert all("RequestItems" in asked for asked in client.asked)


def test_a_call_that_ends_while_its_pages_are_read_is_read_again(table: str, dynamodb: DynamoDBCallStore) -> None:
    record = named(RUNNING)
    run(dynamodb.create(record))
    outcome = "x" * 400_000
    run(dynamodb.apply(record.call_id, Finish(1, State.COMPLETED, outcome), NOW))
    items = items_of(table, record.call_id)
    first_read_came_too_early = {"Items": items[1:]}

    snapshot = run(DynamoDBCallStore(table, Stub(first_read_came_too_early, {"Items": items})).read("call", 0, NOW))

    assert snapshot is not None
    assert snapshot.record.outcome == outcome
    with pytest.raises(StoreUnavailable, match="missing"):
        run(DynamoDBCallStore(table, Stub(*[first_read_came_too_early] * 2)).read("call", 0, NOW))


def test_arguments_that_are_lost_are_an_error_and_not_other_arguments(table: str, dynamodb: DynamoDBCallStore) -> None:
    record = named(replace(PENDING, arguments="x" * 400_000))
    run(dynamodb.create(record))
    lost = items_of(table, record.call_id)[0]
    boto3.client("dynamodb").delete_item(TableName=table, Key={"pk": lost["pk"], "sk": lost["sk"]})

    with pytest.raises(StoreUnavailable, match="missing"):
        run(dynamodb.apply(record.call_id, Claim(), NOW))
