"""Questions to a client at 2025-11-25: requests on the stream it polls, answers that it posts, nobody who waits."""

import pytest

from mcp_stateless import Context
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from mcp_stateless.errors import AskError
from tests.http.door import JsonObject
from tests.tasks.asked import Asked, Name, asks, asks_two
from tests.tasks.deployment import (
    Deployment,
    LegacyClient,
    accept,
    events,
    last_id,
    progress,
    requests,
    response,
    text_of,
    tool,
)

LENGTHS = pytest.mark.parametrize("long_running", [True, False], ids=["long", "short"])


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
