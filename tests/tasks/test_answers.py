"""Answers of a client at 2025-11-25 to what it was asked: whose they are, and what becomes of each."""

import asyncio

from mcp_stateless.calls import polled
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import CallRecord, Claim, Move
from mcp_stateless.calls.store import CallStore, RecordTooLarge, StoreUnavailable
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.sealing import seal
from tests.tasks.asked import Asked, asks, asks_two
from tests.tasks.deployment import RING, Deployment, accept, last_id, messages, response, text_of, tool

MALLORY = Principal("https://issuer.example", "Mallory")


def forged(asked: Asked) -> list[object]:
    """Ids of responses that answer nothing."""
    rpc_id = str(asked.questions[0]["id"])
    call_id = asked.deployment.queue.launched[-1]
    body = f'["{call_id}", "name"]'.encode()
    expires_at = int(asked.deployment.clock.now) + 60
    anonymous = (Principal("", "").key,)
    return [
        1,
        "",
        "name",
        call_id,
        rpc_id[:-1],
        rpc_id[:-2] + ("AA" if not rpc_id.endswith("AA") else "BB"),
        seal(RING, polled.ANSWER_PURPOSE, body, bound_to=(MALLORY.key,), expires_at=expires_at),
        seal(RING, "task", body, bound_to=anonymous, expires_at=expires_at),
        seal(RING, polled.ANSWER_PURPOSE, body, bound_to=anonymous, expires_at=expires_at - 60),
        seal(RING, polled.ANSWER_PURPOSE, b'["x", "name"]', bound_to=anonymous, expires_at=expires_at),
    ]


def test_answers_to_forged_ids_are_acknowledged_and_change_nothing(store: CallStore) -> None:
    asked = Asked(asks, store)
    for rpc_id in forged(asked):
        asked.client.respond({"id": rpc_id}, accept(name="Mallory"))
        assert asked.deployment.work() == 0, rpc_id
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"


def test_the_answer_of_another_caller_changes_nothing(store: CallStore) -> None:
    asked = Asked(asks, store)
    rpc_id, answer = asked.questions[0]["id"], {"result": accept(name="Mallory")}
    asyncio.run(polled.take_answer(asked.deployment.desk, rpc_id, answer, MALLORY))
    assert asked.deployment.work() == 0
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"


def test_answers_that_come_again_or_late_are_acknowledged_and_ignored(store: CallStore) -> None:
    asked = Asked(asks, store)
    [question] = asked.questions
    asked.client.respond(question, accept(name="Ada"))
    asked.client.respond(question, accept(name="Eve"))
    assert text_of(asked.result()) == "Ada"
    asked.client.respond(question, accept(name="too late"))
    assert asked.deployment.work() == 0
    assert len(asked.deployment.queue.launched) == 2


def test_an_answer_to_a_call_that_was_cancelled_is_ignored(store: CallStore) -> None:
    asked = Asked(asks, store)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert asked.client.post(cancelled).status == 202
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert asked.deployment.work() == 0
    assert text_of(asked.result()) == "The call was cancelled."


def test_a_question_that_nobody_answers_expires_with_its_call(store: CallStore) -> None:
    asked = Asked(asks, store, call_ttl_s=600)
    asked.deployment.clock.advance(599)
    asked.stream = asked.client.poll(last_id(asked.stream))
    assert response(asked.stream) is None
    asked.deployment.clock.advance(1)
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    result = asked.result()
    assert (result["isError"], asked.deployment.queue.launched[1:]) == (True, [])


# The one write of an answer


class Moody(MemoryCallStore):
    """A store that refuses the next writes of answers, with the errors in `moods`."""

    def __init__(self) -> None:
        super().__init__()
        self.moods: list[Exception] = []

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        if self.moods and type(move).__name__ == "Answer":
            raise self.moods.pop(0)
        return await super().apply(call_id, move, now_ms)


def test_an_answer_is_written_again_until_the_store_takes_it() -> None:
    store = Moody()
    asked = Asked(asks, store)
    store.moods = [StoreUnavailable("throttled")] * 2
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"


def test_an_answer_that_cannot_be_stored_is_acknowledged_and_the_call_ends_readably() -> None:
    store = Moody()
    asked = Asked(asks, store)
    store.moods = [RecordTooLarge("too large")]
    asked.client.respond(asked.questions[0], accept(name="x" * 1000))
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    result = asked.result()
    assert (result["isError"], text_of(result)) == (True, "The answer is too large to be kept")


def test_the_launch_after_an_answer_may_be_lost(store: CallStore) -> None:
    asked = Asked(asks, store)
    asked.deployment.queue.loses = True
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    asked.deployment.queue.loses = False
    assert asked.deployment.work() == 0
    asked.deployment.clock.advance(31)
    asked.stream = asked.client.poll(last_id(asked.stream))
    assert text_of(asked.result()) == "Ada"


def test_a_report_of_a_lost_worker_does_not_end_a_call_that_waits_for_its_user(store: CallStore) -> None:
    """A duplicate of the event, for example, which came too late for the queue."""
    asked = Asked(asks, store)
    asked.deployment.queue.waiting.append(asked.deployment.queue.launched[-1])
    asked.deployment.fail_work()
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"


def test_a_report_of_a_lost_worker_starts_the_call_again_while_attempts_are_left(store: CallStore) -> None:
    async def done() -> str:
        return "done"

    deployment = Deployment(tool(done, retries=1), store)
    task_id = deployment.start()
    call_id = deployment.queue.waiting[0]
    asyncio.run(store.apply(call_id, Claim(), deployment.desk.now_ms()))
    deployment.fail_work()
    assert deployment.get(task_id)["status"] == "working"
    assert deployment.work() == 1
    assert text_of(deployment.get(task_id)["result"]) == "done"


def test_a_question_keeps_the_place_it_was_asked_in(store: CallStore) -> None:
    """Maps come back from a store in any order; the stream has the questions in theirs."""
    asked = Asked(asks_two, store)
    [first, second] = [message["params"]["message"] for message in messages(asked.stream) if "id" in message]
    assert (first, second) == ("One?", "Two?")
