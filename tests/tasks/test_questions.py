"""Questions to a client at 2025-11-25: requests on the stream it polls, answers that it posts, nobody who waits."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_stateless import Context
from mcp_stateless.calls import polled
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import CallRecord, Claim, Move
from mcp_stateless.calls.store import CallStore, RecordTooLarge, StoreUnavailable
from mcp_stateless.errors import AskError
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.sealing import seal
from tests.http.door import JsonObject
from tests.tasks.deployment import (
    RING,
    Deployment,
    LegacyClient,
    accept,
    events,
    last_id,
    messages,
    progress,
    requests,
    response,
    text_of,
    tool,
)

MALLORY = Principal("https://issuer.example", "Mallory")
LENGTHS = pytest.mark.parametrize("long_running", [True, False], ids=["long", "short"])


class Name(BaseModel):
    name: str


async def asks(ctx: Context[None]) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("Name?", Name, key="name")
    return answer.data.name if answer.action == "accept" else answer.action


async def asks_two(ctx: Context[None]) -> str:
    """Ask for two names at once."""
    answers = await asyncio.gather(ctx.elicit("One?", Name, key="one"), ctx.elicit("Two?", Name, key="two"))
    return " ".join(answer.data.name if answer.action == "accept" else answer.action for answer in answers)


class Asked:
    """A call that has come to its question: the deployment, the client, and the stream with the question in it."""

    def __init__(self, fn: Any, store: CallStore, *, long_running: bool = True, **settings: Any) -> None:
        self.deployment = Deployment(tool(fn, long_running=long_running), store, **settings)
        self.client = LegacyClient(self.deployment)
        self.primed = self.client.call(meta={"progressToken": "t"})
        assert response(self.primed) is None
        if long_running:
            assert requests(self.primed) == []
            self.deployment.work()
            self.stream = self.client.poll(last_id(self.primed))
        else:
            self.stream = self.primed
        self.questions = requests(self.stream)

    def ended(self) -> JsonObject:
        """Work and poll; the response has to be there then."""
        self.deployment.work()
        found = response(self.client.poll(last_id(self.stream)))
        assert found is not None
        return found

    def result(self) -> JsonObject:
        result: JsonObject = self.ended()["result"]
        return result


@LENGTHS
def test_a_question_travels_on_the_stream_and_its_answer_is_posted(store: CallStore, long_running: bool) -> None:
    asked = Asked(asks, store, long_running=long_running)
    [question] = asked.questions
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Name?"
    asked.client.respond(question, accept(name="Ada"))
    ended = asked.ended()
    assert (ended["id"], text_of(ended["result"])) == (1, "Ada")


@LENGTHS
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_the_user_may_refuse(long_running: bool, action: str) -> None:
    asked = Asked(asks, MemoryCallStore(), long_running=long_running)
    asked.client.respond(asked.questions[0], {"action": action})
    assert text_of(asked.result()) == action


def test_one_question_takes_two_pieces_of_work_and_none_while_it_is_open(store: CallStore) -> None:
    asked = Asked(asks, store)
    deployment = asked.deployment
    assert len(deployment.queue.launched) == 1
    for _ in range(20):
        deployment.clock.advance(30)
        asked.stream = asked.client.poll(last_id(asked.stream))
        assert response(asked.stream) is None
        assert deployment.work() == 0
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"
    assert len(deployment.queue.launched) == 2


def test_a_short_tool_that_asks_takes_one_piece_of_work_and_runs_in_the_request_before(store: CallStore) -> None:
    asked = Asked(asks, store, long_running=False)
    assert asked.deployment.queue.launched == []
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"
    assert len(asked.deployment.queue.launched) == 1


def test_a_short_tool_asks_its_second_question_from_the_worker(store: CallStore) -> None:
    async def asks_twice(ctx: Context[None]) -> str:
        return f"{await asks(ctx)} {(await ctx.elicit('Again?', Name)).action}"

    asked = Asked(asks_twice, store, long_running=False)
    asked.client.respond(asked.questions[0], accept(name="Ada"))
    asked.deployment.work()
    asked.stream = asked.client.poll(last_id(asked.stream))
    [question] = requests(asked.stream)
    asked.client.respond(question, {"action": "cancel"})
    assert text_of(asked.result()) == "Ada cancel"


def test_a_short_tool_that_does_not_come_to_a_question_is_answered_at_once() -> None:
    async def may_ask(ctx: Context[None]) -> str:
        return str((await ctx.elicit("Name?", Name)).action) if ctx.headers.get("x-ask") else "not asked"

    deployment = Deployment(tool(may_ask, long_running=False), MemoryCallStore())
    assert text_of(LegacyClient(deployment).call().result) == "not asked"


@LENGTHS
def test_an_error_is_an_answer_too_and_is_recorded(store: CallStore, long_running: bool) -> None:
    runs: list[str] = []

    async def asks_and_goes_on(ctx: Context[None]) -> str:
        try:
            await ctx.elicit("Name?", Name, key="name")
        except AskError as error:
            runs.append(str(error))
        return f"{runs[-1] if runs else ''}, {(await ctx.elicit('Again?', Name, key='again')).action}"

    asked = Asked(asks_and_goes_on, store, long_running=long_running)
    error = {"code": -32603, "message": "the dialogue broke"}
    message = {"jsonrpc": "2.0", "id": asked.questions[0]["id"], "error": error}
    assert (asked.client.post(message).status, asked.client.post(message).body) == (202, b"")
    asked.deployment.work()
    asked.stream = asked.client.poll(last_id(asked.stream))
    [question] = requests(asked.stream)
    asked.client.respond(question, {"action": "decline"})
    assert text_of(asked.result()) == "the dialogue broke, decline"
    assert runs == ["the dialogue broke"] * 2


def test_an_error_that_a_tool_lets_pass_is_its_result(store: CallStore) -> None:
    asked = Asked(asks, store)
    error = {"code": 1, "message": "nobody at home"}
    asked.client.post({"jsonrpc": "2.0", "id": asked.questions[0]["id"], "error": error})
    result = asked.result()
    assert (result["isError"], text_of(result)) == (True, "nobody at home")


def test_two_questions_at_once_are_answered_one_by_one(store: CallStore) -> None:
    asked = Asked(asks_two, store)
    one, two = asked.questions
    asked.client.respond(two, accept(name="Eve"))
    assert asked.deployment.work() == 0
    stream = asked.client.poll(last_id(asked.stream))
    assert requests(stream) == []
    asked.client.respond(one, accept(name="Ada"))
    assert text_of(asked.result()) == "Ada Eve"
    assert len(asked.deployment.queue.launched) == 2


# What may be asked


@pytest.mark.parametrize("capabilities", [{}, {"sampling": {}}, {"elicitation": {"url": {}}}])
@LENGTHS
def test_a_client_is_only_asked_what_its_token_says(capabilities: JsonObject, long_running: bool) -> None:
    deployment = Deployment(tool(asks, long_running=long_running), MemoryCallStore())
    client = LegacyClient(deployment, capabilities)
    answer = client.call()
    deployment.work()
    result = answer.json["result"] if not long_running else (response(client.poll(last_id(answer))) or {})["result"]
    assert result["isError"]
    assert "This c" in text_of(result)


@LENGTHS
def test_without_its_token_a_client_is_asked_nothing(long_running: bool) -> None:
    deployment = Deployment(tool(asks, long_running=long_running), MemoryCallStore())
    client = LegacyClient(deployment)
    del client.headers["mcp-session-id"]
    answer = client.call()
    deployment.work()
    result = answer.json["result"] if not long_running else (response(client.poll(last_id(answer))) or {})["result"]
    assert result["isError"]


def test_a_client_that_does_not_poll_is_asked_nothing() -> None:
    deployment = Deployment(tool(asks, long_running=False), MemoryCallStore())
    client = LegacyClient(deployment)
    client.headers["user-agent"] = "Java-http-client/21"
    assert client.call().result["isError"]


# Whose answer it is


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


# While it is open


def test_heartbeats_go_on_and_the_next_poll_is_a_while_off(store: CallStore) -> None:
    asked = Asked(asks, store, max_retry_ms=15_000)
    stream, seen, retries = asked.stream, progress(asked.stream), []
    for _ in range(8):
        asked.deployment.clock.advance(30)
        stream = asked.client.poll(last_id(stream))
        seen += progress(stream)
        retries += [event.retry for event in events(stream) if event.retry is not None]
    assert len(seen) == 9
    assert seen == sorted(set(seen))
    assert retries[-1] == 30_000
    assert max(retries) == 30_000


def test_a_question_is_shown_once_to_who_follows_the_stream_and_again_to_who_recovers_it(store: CallStore) -> None:
    asked = Asked(asks_two, store)
    ids = [event.id for event in events(asked.stream) if event.message and "method" in event.message and event.id]
    assert len(ids) == 2
    after_one, after_both = asked.client.poll(ids[0]), asked.client.poll(ids[1])
    assert [question["params"]["message"] for question in requests(after_one)] == ["Two?"]
    assert requests(after_both) == []
    recovered = asked.client.poll(last_id(asked.primed))
    assert [question["params"]["message"] for question in requests(recovered)] == ["One?", "Two?"]
    for question in requests(recovered):
        asked.client.respond(question, accept(name="Ada"))
    for question in asked.questions:
        asked.client.respond(question, accept(name="twice"))
    assert text_of(asked.result()) == "Ada Ada"


def test_a_question_of_a_short_tool_is_shown_again_to_who_posts_the_call_again(store: CallStore) -> None:
    """A client that lost the stream before its first event id has nothing but its request."""
    asked = Asked(asks, store, long_running=False)
    repeated = asked.client.call(request_id=1)
    [question] = requests(repeated)
    asked.client.respond(question, accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"
    assert len(asked.deployment.queue.launched) == 1


def test_an_answer_that_does_not_fit_is_asked_for_again(store: CallStore) -> None:
    asked = Asked(asks, store)
    asked.client.respond(asked.questions[0], {"action": "accept", "content": {"name": 5}})
    asked.deployment.work()
    asked.stream = asked.client.poll(last_id(asked.stream))
    [question] = requests(asked.stream)
    assert question["id"] != asked.questions[0]["id"]
    asked.client.respond(asked.questions[0], accept(name="Eve"))
    asked.client.respond(question, accept(name="Ada"))
    assert text_of(asked.result()) == "Ada"


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
