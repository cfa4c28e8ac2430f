"""State-only rounds (2026-07-28): a long call for clients that declare no tasks, who repeat it until it has ended."""

import asyncio
import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_stateless import Context, MCPServer
from mcp_stateless.calls import waiting
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from mcp_stateless.context import Headers
from mcp_stateless.errors import InternalError
from mcp_stateless.exchange import Environment, Exchange
from mcp_stateless.invocation import Invocation
from mcp_stateless.long_calls import hold_s
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.revisions import REVISIONS
from mcp_stateless.protocol.sealing import seal
from mcp_stateless.settings import Settings
from tests.http.door import Answer, JsonObject
from tests.tasks.deployment import RING, Deployment, Unreadable, accept, text_of, tool

CLAUDE_CODE: JsonObject = {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}
SECONDS = 10


class Name(BaseModel):
    name: str


async def done() -> str:
    """Work."""
    return "done"


def call(deployment: Deployment, name: str = "tool", **params: Any) -> Answer:
    return deployment.call(name, capabilities=CLAUDE_CODE, **params)


def again(deployment: Deployment, asked: Answer, **params: Any) -> Answer:
    """The same call with the state it was answered with."""
    assert asked.result["resultType"] == "input_required", asked.json
    return call(deployment, requestState=asked.result["requestState"], **params)


def test_a_long_call_is_repeated_until_its_result_is_there(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    first = call(deployment)
    assert first.result["resultType"] == "input_required"
    assert first.result["inputRequests"] == {}
    second = again(deployment, first)
    assert second.result["inputRequests"] == {}
    assert deployment.work() == 1
    ended = again(deployment, second).result
    assert (ended["resultType"], text_of(ended)) == ("complete", "done")
    assert not {"inputRequests", "requestState"} & set(ended)
    assert len(deployment.queue.launched) == 1


def test_every_round_has_a_state_of_its_own() -> None:
    deployment = Deployment(tool(done), MemoryCallStore())
    answer = call(deployment)
    states = {answer.result["requestState"]}
    for _ in range(8):
        answer = again(deployment, answer)
        states.add(answer.result["requestState"])
    assert len(states) == 9


def test_a_state_can_be_brought_again(store: CallStore) -> None:
    """A client that got no answer repeats its request; nothing is used up by that."""
    deployment = Deployment(tool(done), store)
    first = call(deployment)
    assert again(deployment, first).result["resultType"] == again(deployment, first).result["resultType"]
    deployment.work()
    assert text_of(again(deployment, first).result) == text_of(again(deployment, first).result) == "done"


def test_the_state_names_the_call_whatever_arguments_come_with_it() -> None:
    async def tells(what: str) -> str:
        return what

    deployment = Deployment(tool(tells), MemoryCallStore())
    first = call(deployment, arguments={"what": "this"})
    second = again(deployment, first, arguments={"what": "that"})
    third = again(deployment, second, arguments={"else": 1})
    deployment.work()
    assert text_of(again(deployment, third).result) == "this"
    assert len(deployment.queue.launched) == 1


def test_a_host_like_claude_code_gets_nine_rounds_and_a_ticket_then(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    probe = {"io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"}}
    discovered = deployment.door.modern(
        "server/discover", capabilities=CLAUDE_CODE, meta=probe, request_id="server-discover-probe-1"
    )
    assert discovered.json["id"] == "server-discover-probe-1"
    assert "2026-07-28" in discovered.result["supportedVersions"]
    assert {"resultType", "ttlMs", "cacheScope"} <= set(discovered.result)
    meta = {"claudecode/toolUseId": "toolu_1", "progressToken": 1}
    answers = [call(deployment, meta=meta)]
    for _ in range(8):
        answers.append(again(deployment, answers[-1], meta=meta))
    assert all(answer.result["inputRequests"] == {} for answer in answers)
    tenth = again(deployment, answers[-1], meta=meta).result
    assert (tenth["resultType"], tenth["isError"]) == ("complete", False)
    ticket = text_of(tenth).split()[-1]
    assert "check_call" in text_of(tenth)
    still = deployment.call("check_call", {"ticket": ticket}, capabilities={}).result
    assert "still running" in text_of(still)
    deployment.work()
    ended = deployment.call("check_call", {"ticket": ticket}, capabilities={}).result
    assert (text_of(ended), ended["resultType"]) == ("done", "complete")
    assert len(deployment.queue.launched) == 1


@pytest.mark.parametrize("most", [1, 3])
def test_the_most_rounds_are_a_setting(most: int) -> None:
    deployment = Deployment(tool(done), MemoryCallStore(), max_rounds=most)
    answer = call(deployment)
    for _ in range(most - 1):
        answer = again(deployment, answer)
    assert again(deployment, answer).result["resultType"] == "complete"


async def asks(ctx: Context[None]) -> str:
    """Ask twice."""
    names = []
    for number in (1, 2):
        answer = await ctx.elicit(f"Name {number}?", Name, key=f"name{number}")
        names.append(answer.data.name if answer.action == "accept" else answer.action)
    return " ".join(names)


def test_questions_are_put_and_answered_in_rounds(store: CallStore) -> None:
    deployment = Deployment(tool(asks), store)
    answer = call(deployment)
    for number, name in ((1, "Ada"), (2, "Eve")):
        deployment.work()
        asked = again(deployment, answer)
        [(key, question)] = asked.result["inputRequests"].items()
        assert (key, question["params"]["message"]) == (f"name{number}", f"Name {number}?")
        answer = again(deployment, asked, inputResponses={key: accept(name=name)})
        assert answer.result["inputRequests"] == {}
    deployment.work()
    assert text_of(again(deployment, answer).result) == "Ada Eve"
    assert len(deployment.queue.launched) == 3


def test_rounds_with_questions_are_counted_and_a_question_in_the_last_one_ends_the_call_readably() -> None:
    deployment = Deployment(tool(asks), MemoryCallStore())
    answer = call(deployment)
    deployment.work()
    rounds = 1
    while answer.result["resultType"] == "input_required":
        rounds += 1
        answer = again(deployment, answer)
        assert rounds <= 10
    assert (rounds, answer.result["isError"]) == (10, True)
    assert "Call tool again" in text_of(answer.result)


@pytest.mark.parametrize("bad", [{"name1": {"action": "accept"}}, {"other": accept(name="Ada")}, {}])
def test_an_answer_that_does_not_fit_or_is_missing_is_asked_for_again(bad: JsonObject) -> None:
    deployment = Deployment(tool(asks), MemoryCallStore())
    answer = call(deployment)
    deployment.work()
    again(deployment, answer, inputResponses=bad)
    deployment.work()
    [key] = again(deployment, answer).result["inputRequests"]
    assert (key == "name1") == ("name1" not in bad)


@pytest.mark.parametrize("answers", [["x"], "x", 5, {"name1": "Ada"}, {"name1": None}])
def test_answers_of_another_shape_are_invalid_params(answers: object) -> None:
    deployment = Deployment(tool(asks), MemoryCallStore())
    assert again(deployment, call(deployment), inputResponses=answers).error["code"] == -32602


# States that are not this caller's


def two_tools(server: MCPServer) -> None:
    server.tool("tool", long_running=True)(done)
    server.tool("other", long_running=True)(done)
    server.tool("short")(done)


def test_states_that_do_not_hold_are_all_told_the_same(store: CallStore) -> None:
    deployment = Deployment(two_tools, store)
    state = call(deployment).result["requestState"]
    other = call(deployment, "other").result["requestState"]
    call_id = deployment.queue.launched[0]
    body, expires_at = f'["{call_id}",1]'.encode(), int(deployment.clock.now) + 60
    mallory = Principal("https://issuer.example", "Mallory")

    def sealed(caller: Principal, expires_at: int) -> str:
        bound_to = (caller.key, "tool")
        return waiting.PREFIX + seal(RING, waiting.PURPOSE, body, bound_to=bound_to, expires_at=expires_at)

    assert call(deployment, requestState=sealed(ANONYMOUS, expires_at)).result["resultType"] == "input_required"
    told = [
        call(deployment, requestState=other),
        call(deployment, requestState=sealed(mallory, expires_at)),
        call(deployment, requestState=sealed(ANONYMOUS, expires_at - 60)),
        call(deployment, requestState=state[:-1]),
        call(deployment, requestState=f"{state}A"),
        call(deployment, requestState=waiting.PREFIX),
        call(deployment, requestState="garbage"),
        call(deployment, requestState=call_id),
        call(deployment, "short", requestState=state),
        call(deployment, "other", requestState=state),
    ]
    assert {answer.status for answer in told} == {200}
    assert {answer.error["code"] for answer in told} == {-32602}
    assert {answer.error["message"] for answer in told} == {"Invalid params: the request state does not hold"}
    assert len(deployment.queue.launched) == 2, "none of them started a call"


def test_a_state_of_a_call_that_is_gone_says_that_it_is(store: CallStore) -> None:
    deployment = Deployment(tool(done), store, call_ttl_s=600)
    first = call(deployment)
    deployment.clock.advance(300)
    second = again(deployment, first)
    deployment.clock.advance(300)
    result = again(deployment, second).result
    assert result["isError"]
    assert "Call the tool again" in text_of(result)


# Progress


def test_the_latest_progress_goes_beside_an_interim_result_for_who_asks(store: CallStore) -> None:
    going_on, reported = threading.Event(), threading.Event()

    async def reports(ctx: Context[None]) -> str:
        await ctx.report_progress(1, 2, "half of it")
        await asyncio.to_thread(going_on.wait, SECONDS)
        return "all of it"

    deployment = Deployment(tool(reports), store)
    first = call(deployment, meta={"progressToken": "t"})
    worker = threading.Thread(target=deployment.work)
    worker.start()
    for _ in range(SECONDS * 100):
        answer = again(deployment, first, meta={"progressToken": "t"})
        if answer.headers["content-type"] == "text/event-stream":
            break
        reported.wait(0.01)
    notification, message = answer.stream
    assert notification["method"] == "notifications/progress"
    assert notification["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half of it"}
    assert message["result"]["resultType"] == "input_required"
    assert "progress" not in message["result"]
    silent = again(deployment, first)
    assert (silent.headers["content-type"], "progress" in silent.result) == ("application/json", False)
    going_on.set()
    worker.join(SECONDS)
    assert text_of(again(deployment, first, meta={"progressToken": "t"}).result) == "all of it"


# Settings


def test_without_rounds_a_long_call_runs_in_place_and_no_ticket_is_offered() -> None:
    deployment = Deployment(tool(done), MemoryCallStore(), state_rounds=False)
    assert text_of(call(deployment).result) == "done"
    assert deployment.queue.launched == []
    listed = deployment.door.modern("tools/list").result["tools"]
    assert [entry["name"] for entry in listed] == ["tool"]


def test_a_round_is_held_for_as_long_as_the_setting_says_and_no_longer_than_needed() -> None:
    deployment = Deployment(tool(done), MemoryCallStore(), round_hold_s=1)
    started = time.monotonic()
    first = call(deployment)
    assert 0.4 < time.monotonic() - started < 2
    deployment.work()
    started = time.monotonic()
    assert text_of(again(deployment, first).result) == "done"
    assert time.monotonic() - started < 0.4


def exchange(source: str, deadline: float | None, chosen: float | None) -> Exchange:
    settings = Settings.model_validate({"round_hold_s": chosen})
    invocation = Invocation(source, 1, None, None if deadline is None else time.monotonic() + deadline, "", None, None)
    request = Call(1, "tools/call", {}, REVISIONS["2026-07-28"])
    return Exchange(request, Environment(settings), Headers({}), invocation)


@pytest.mark.parametrize(
    ("source", "deadline", "chosen", "held"),
    [
        ("http_api", 29, None, 20),
        ("rest_api", 28, None, 20),
        ("function_url", 100, None, 50),
        ("alb", 100, None, 50),
        ("local", None, None, 50),
        ("http_api", 29, 5, 5),
        ("function_url", 100, 55, 55),
        ("function_url", 100, 0, 0),
        ("http_api", 10, None, 9),
        ("function_url", 30, None, 29),
        ("function_url", 30, 90, 29),
        ("http_api", 0.5, None, 0),
        ("http_api", -5, 20, 0),
    ],
)
def test_a_round_is_held_by_what_stands_in_front_and_by_the_time_that_is_left(
    source: str, deadline: float | None, chosen: float | None, held: float
) -> None:
    assert hold_s(exchange(source, deadline, chosen)) == pytest.approx(held, abs=0.1)


# Trouble


def test_the_trouble_of_the_store_is_not_the_clients() -> None:
    store = Unreadable()
    deployment = Deployment(tool(done), store)
    store.down = True
    first = call(deployment)
    second = again(deployment, first)
    store.down = False
    deployment.work()
    assert text_of(again(deployment, second).result) == "done"
    assert len(deployment.queue.launched) == 1


async def fails() -> str:
    raise InternalError("The disk is full")


def test_a_call_that_ends_with_a_protocol_error_ends_with_a_readable_result(store: CallStore) -> None:
    deployment = Deployment(tool(fails), store)
    first = call(deployment)
    deployment.work()
    result = again(deployment, first).result
    assert (result["isError"], text_of(result)) == (True, "The disk is full")


def test_a_client_that_cannot_be_asked_has_its_call_ended_with_a_readable_result(store: CallStore) -> None:
    deployment = Deployment(tool(asks), store)
    first = deployment.call(capabilities={})
    deployment.work()
    ended = deployment.call(capabilities={}, requestState=first.result["requestState"]).result
    assert ended["isError"]
