"""Event ids: whose they are, what a wrong one is answered, how long they last, and that none comes twice."""

import itertools
import json
import secrets
from collections.abc import Callable

import pytest

from mcp_stateless import MCPServer
from mcp_stateless.calls.cursor import EXPIRED_FOR_S, Cursor
from mcp_stateless.calls.record import Cancel, Fail
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.sealing import KeyRing
from tests.http.door import Answer, Door
from tests.polling.streams import stream
from tests.polling.world import World

REFUSAL = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Last-Event-ID"}}
TTL_S = 6 * 3600
BOB = Principal("https://issuer.example", "Bob")
EXPIRED = "The result of this call is not kept any more. Call the tool again."


async def quick() -> int:
    return 1


@pytest.fixture
def offering(local: World) -> World:
    local.tool(quick)
    return local


def assert_refused(world: World, answer: Answer) -> None:
    """In the same words for every reason, and without a read."""
    assert answer.status == 400
    assert json.loads(answer.body) == REFUSAL
    assert "read" not in world.store.asked


# B60
@pytest.mark.parametrize("last_event_id", [None, ""])
def test_a_get_without_an_id_asks_for_a_stream_that_is_not_there(offering: World, last_event_id: str | None) -> None:
    answer = offering.get(last_event_id)
    assert (answer.status, answer.body) == (405, b"")
    assert "POST" in answer.headers["allow"]
    assert offering.store.asked == []


# B60: TypeScript clients send the other GET while a call is polled.
def test_both_kinds_of_get_are_served_side_by_side(offering: World) -> None:
    begun = offering.start()
    assert offering.get(None).status == 405
    again = offering.poll(begun.last_id)
    assert offering.get(None).status == 405
    offering.work()
    assert offering.poll(again.last_id).result["structuredContent"] == {"result": 1}


# B61
@pytest.mark.parametrize("last_event_id", ["x", "0", "1_2", "\xff\xfe", "x" * 5000, "..", "null", "AQ", "a b"])
def test_garbage_is_refused(offering: World, last_event_id: str) -> None:
    assert_refused(offering, offering.get(last_event_id))


# B61
def test_an_id_with_one_character_changed_is_refused_wherever_it_is(offering: World) -> None:
    good = offering.start().last_id
    for place, letter in enumerate(good):
        changed = "B" if letter == "A" else "A"
        assert_refused(offering, offering.get(good[:place] + changed + good[place + 1 :]))


# B61
def test_an_id_cut_or_continued_is_refused(offering: World) -> None:
    good = offering.start().last_id
    for wrong in (good[:-1], good[1:], good[: len(good) // 2], good + "A", good + "=", f"{good}, {good}"):
        assert_refused(offering, offering.get(wrong))


# B62, A44
@pytest.mark.parametrize("principal", [BOB, Principal("", "Bob"), Principal("https://issuer.example", "")])
def test_an_id_of_another_caller_is_refused(offering: World, principal: Principal) -> None:
    offering.start()
    [call_id] = offering.queue.call_ids
    foreign = Cursor(call_id, 1).event_id(offering.keys, principal, offering.now_ms() + 60_000)
    assert_refused(offering, offering.get(foreign))


# B62
def test_whoever_else_is_logged_in_is_refused_as_anybody_is(deploy: Callable[..., World]) -> None:
    world = deploy(identity="lambda_authorizer")
    world.tool(quick)

    def door(principal: str | None) -> Door:
        authorizer = None if principal is None else {"lambda": {"principalId": principal}}
        return Door(world.handler(), authorizer=authorizer)

    begun = stream(door("alice").call("long"))
    world.work()
    world.store.asked.clear()
    fields = {"last-event-id": begun.last_id}
    assert_refused(world, door("bob").send("GET", headers=fields))
    assert door(None).send("GET", headers=fields).status == 401
    assert world.store.asked == []
    assert stream(door("alice").send("GET", headers=fields)).result["structuredContent"] == {"result": 1}
    # Without an id it is no poll, and nobody has to say who it is.
    assert door(None).send("GET").status == 405


def test_an_id_signed_with_another_key_is_refused(offering: World) -> None:
    offering.start()
    [call_id] = offering.queue.call_ids
    ring = KeyRing((secrets.token_bytes(32),))
    assert_refused(
        offering, offering.get(Cursor(call_id, 1).event_id(ring, Principal("", ""), offering.now_ms() + 60_000))
    )


# T8 (Kotlin)
def test_the_id_of_the_last_event_is_answered_405_without_a_read(world: World) -> None:
    world.tool(quick)
    begun = world.start()
    world.work()
    ended = world.poll(begun.last_id)
    world.store.asked.clear()
    for _ in range(2):
        answer = world.get(ended.last_id)
        assert (answer.status, answer.body) == (405, b"")
    assert world.store.asked == []


# T8 (Go), B58, HOSTS 16
def test_eight_polls_of_a_running_call_get_eight_ids_and_times_to_wait(world: World) -> None:
    world.tool(quick)
    begun = world.start(request_id=5)
    ids, last_id = {begun.last_id}, begun.last_id
    for _ in range(8):
        world.clock.advance(2)
        answer = world.get(last_id)
        assert answer.body.startswith(b"id: ")
        [event] = stream(answer).events
        assert event.data == ""
        assert event.retry is not None
        assert event.id is not None
        last_id = event.id
        ids.add(last_id)
    assert len(ids) == 9
    world.work()
    response = world.poll(last_id).response
    assert response is not None
    assert response["id"] == 5


# B61, T8, and the choices made since: a result, not an error.
@pytest.mark.parametrize("after_s", [TTL_S, TTL_S + EXPIRED_FOR_S - 2])
def test_an_expired_call_ends_as_a_result_for_the_original_id(world: World, after_s: int) -> None:
    world.tool(quick)
    begun = world.start(request_id="five", token=1)
    world.work()
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}
    world.clock.advance(after_s)
    ended = world.poll(begun.last_id)
    assert ended.response is not None
    assert ended.response["id"] == "five"
    assert ended.result == {"content": [{"type": "text", "text": EXPIRED}], "isError": True}
    assert world.get(ended.last_id).status == 405


# B61
def test_a_call_whose_record_is_gone_ends_as_a_result(offering: World) -> None:
    cursor = Cursor("never-stored-in-here-00", "five")
    ended = offering.poll(cursor.event_id(offering.keys, Principal("", ""), offering.now_ms() + 60_000))
    assert ended.response is not None
    assert ended.response["id"] == "five"
    assert ended.text == EXPIRED


def test_an_id_ends_a_day_after_its_call(offering: World) -> None:
    begun = offering.start()
    offering.clock.advance(TTL_S + EXPIRED_FOR_S)
    assert_refused(offering, offering.get(begun.last_id))


# B63, A41
def test_the_same_id_is_answered_with_the_same_bytes_until_the_call_expires(world: World) -> None:
    world.tool(quick)
    begun = world.start(token=1)
    running = world.poll(begun.last_id)
    world.work()
    first = [world.get(last_id).body for last_id in (begun.last_id, running.last_id)]
    world.clock.advance(TTL_S - 1)
    assert [world.get(last_id).body for last_id in (begun.last_id, running.last_id)] == first
    assert first[0] != first[1]


# HOSTS 17: whatever ended it, the client hears of it in a result.
@pytest.mark.parametrize(
    "end",
    [lambda record: Cancel('{"result":{"content":[]}}'), lambda record: Fail(0, record.due_ms, '{"result":{}}')],
    ids=["cancelled", "failed"],
)
def test_a_call_that_ended_otherwise_is_replayed_too(world: World, end: Callable[..., Cancel | Fail]) -> None:
    world.tool(quick)
    begun = world.start()
    [call_id] = world.queue.call_ids
    world.write(world.store.apply(call_id, end(world.read(call_id)), world.now_ms()))
    bodies = {world.get(begun.last_id).body for _ in range(3)}
    assert len(bodies) == 1
    assert world.poll(begun.last_id).response is not None


# A37, A38
def test_no_id_comes_twice_among_parallel_calls(world: World) -> None:
    world.tool(quick)
    streams = [world.start(request_id=1) for _ in range(3)]
    ids = [each.last_id for each in streams]
    for _ in range(3):
        streams = [world.poll(each.last_id) for each in streams]
        ids += [each.last_id for each in streams]
    assert len(set(ids)) == len(ids)


# CALLS.md: "about 62 characters (111 with a UUID id)"; a header field has to carry it.
@pytest.mark.parametrize(
    ("request_id", "most"), [(1, 100), ("0190c6a1-8c1f-7c3e-9d5e-3b1f0a2c4d5e", 150), ("x" * 126, 260)]
)
def test_ids_fit_into_a_header(offering: World, request_id: str | int, most: int) -> None:
    assert len(offering.start(request_id=request_id).last_id) <= most


# B66
def test_fifty_polls_at_once_cost_a_read_each_and_nothing_else(world: World) -> None:
    world.tool(quick)
    begun = world.start()
    world.store.asked.clear()
    answers = [world.get(begun.last_id) for _ in range(50)]
    assert {answer.status for answer in answers} == {200}
    assert world.store.asked == ["read"] * 50


def test_keys_can_be_exchanged_while_a_call_is_polled(offering: World) -> None:
    begun = offering.start()
    [call_id] = offering.queue.call_ids
    old = Cursor.from_event_id(begun.last_id, offering.keys, Principal("", ""), offering.clock())
    newer = KeyRing((secrets.token_bytes(32), *offering.keys.keys))
    assert Cursor.from_event_id(begun.last_id, newer, Principal("", ""), offering.clock()) == old
    assert old.call_id == call_id


def test_without_polling_a_resuming_get_is_no_poll() -> None:
    server = MCPServer("plain", "1")
    server.tool(long_running=True)(quick)
    door = Door(server.lambda_handler())
    assert door.send("GET", headers={"last-event-id": "x"}).status == 405
    assert door.call("quick").result["structuredContent"] == {"result": 1}


def test_the_counting_of_polls_does_not_wear_out(offering: World) -> None:
    last_id = offering.start(token=0).last_id
    values = []
    for _ in itertools.repeat(None, 400):
        polled = offering.poll(last_id)
        values.append(polled.progress)
        last_id = polled.last_id
    assert values == sorted(set(values))
