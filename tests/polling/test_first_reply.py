"""How the POST of a long call is answered: a primed stream for clients that come back, plain JSON for all others."""

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mcp_stateless import Context
from mcp_stateless.calls.memory import MemoryCallStore
from tests.http.door import Door, initialize, request
from tests.polling.streams import stream
from tests.polling.world import World

JAVA = "Java-http-client/21"
CODEX = "codex-mcp-client/0.171.0"


async def quick(n: int = 1) -> int:
    return n


@pytest.fixture
def offering(local: World) -> World:
    local.tool(quick)
    local.tool(quick, "short", long_running=False)
    return local


def polled(world: World, **options: Any) -> bool:
    """Whether a call is answered with a primed stream; otherwise it must have run in place."""
    answer = world.post(**options)
    if answer.headers["content-type"] == "text/event-stream":
        assert not answer.body.endswith(b"}\n\n"), "a stream with the response in it"
        return True
    assert answer.result["structuredContent"] == {"result": 1}
    assert world.store.asked == []
    assert world.queue.call_ids == []
    return False


# B57, B65
def test_a_polling_client_gets_an_id_and_empty_data_before_anything_else(world: World) -> None:
    world.tool(quick)
    answer = world.post()
    assert re.fullmatch(rb"id: [\w-]+\nretry: 1000\ndata: \n\n", answer.body)
    assert stream(answer).messages == []
    # The record lies in the store and the worker is started before the client knows the id.
    assert world.store.asked == ["create"]
    assert len(world.queue.call_ids) == 1


# B57; HOSTS 15
@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26", "2024-11-05", None])
def test_a_client_of_an_older_revision_or_of_none_is_answered_in_place(offering: World, version: str | None) -> None:
    if version == "2024-11-05":
        assert "structuredContent" not in offering.post(version=version).result
    else:
        answer = offering.post(version=version)
        assert answer.headers["content-type"] == "application/json"
        assert answer.result["content"] == [{"type": "text", "text": "1"}]
    assert offering.store.asked == []


# B57
@pytest.mark.parametrize("accept", ["application/json", "*/*", None, "application/json, text/event-stream;q=0"])
def test_a_client_that_does_not_name_event_streams_is_answered_in_place(offering: World, accept: str | None) -> None:
    assert not polled(offering, headers={"accept": accept})


def test_the_order_in_accept_does_not_matter(offering: World) -> None:
    assert polled(offering, headers={"accept": "text/event-stream, application/json"})
    assert polled(offering, headers={"accept": "text/event-stream"})


def test_a_short_tool_of_a_polling_server_is_plain_json(offering: World) -> None:
    assert not polled(offering, name="short")


# B57
def test_at_2026_07_28_there_is_no_id_and_no_time_to_wait(offering: World) -> None:
    answer = offering.door.modern("tools/call", {"name": "short", "arguments": {}})
    assert b"retry:" not in answer.body
    assert b"id: " not in answer.body
    assert offering.get("anything", "2026-07-28").status == 405


def test_an_unknown_future_revision_does_not_unlock_polling(offering: World) -> None:
    assert offering.post(version="2027-01-01").status == 400
    assert offering.store.asked == []


@pytest.mark.parametrize(
    ("request_id", "fits"), [("x" * 126, True), ("x" * 127, False), (10**127, True), ("é" * 22, False)]
)
def test_an_id_too_long_for_event_ids_runs_in_place(offering: World, request_id: str | int, fits: bool) -> None:
    assert polled(offering, request_id=request_id) == fits


@pytest.mark.parametrize("request_id", [0, -1, 2**63, "", "a\nid: b", "ü", "7"])
def test_the_id_of_the_request_comes_back_as_it_was(offering: World, request_id: Any) -> None:
    begun = offering.start(request_id=request_id)
    offering.work()
    response = offering.poll(begun.last_id).response
    assert response is not None
    assert response["id"] == request_id
    assert type(response["id"]) is type(request_id)


def test_a_user_agent_on_the_deny_list_is_answered_in_place() -> None:
    world = World(MemoryCallStore(), no_poll_user_agents=("Bad/", "Worse/1"))
    world.tool(quick)
    assert not polled(world, headers={"user-agent": "Worse/1.2"})
    assert polled(world, headers={"user-agent": "Worse/2"})
    assert polled(world, headers={"user-agent": JAVA})


def test_a_user_agent_on_the_allow_list_polls_at_an_older_revision(offering: World) -> None:
    begun = offering.start(version="2025-06-18", headers={"user-agent": CODEX})
    offering.work()
    assert stream(offering.get(begun.last_id, "2025-06-18")).result["structuredContent"] == {"result": 1}


def test_a_batch_of_a_client_on_the_allow_list_runs_in_place(offering: World) -> None:
    calls = [request("tools/call", {"name": "long", "arguments": {"n": n}}, n) for n in (1, 2)]
    headers = {"mcp-protocol-version": "2025-03-26", "user-agent": CODEX}
    answers = offering.door.post(calls, headers).json
    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["1", "2"]


def test_a_server_that_never_sends_event_streams_runs_in_place() -> None:
    world = World(MemoryCallStore(), json_response=True)
    world.tool(quick)
    assert not polled(world)


# T1: claude.ai, VS Code and Gemini CLI send no version after the handshake.
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2099-01-01"])
def test_a_client_without_version_headers_is_never_primed(offering: World, version: str) -> None:
    door, shape = offering.door, {"sec-fetch-mode": "cors"}
    first = door.post(request("initialize", initialize(version), 0), shape)
    assert first.json["id"] == 0
    assert first.result["protocolVersion"] == ("2025-11-25" if version.startswith("2099") else version)
    assert "mcp-session-id" not in first.headers
    noted = door.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, shape)
    assert (noted.status, noted.body, noted.headers.get("content-type")) == (202, b"", None)
    assert offering.get(None, None).status == 405
    assert "nextCursor" not in door.post(request("tools/list", {}, 1), shape).result
    answer = offering.post(version=None, token=1, headers=shape)
    assert answer.headers["content-type"] == "application/json"
    assert answer.result["content"] == [{"type": "text", "text": "1"}]


# T9
def test_the_java_client_gets_json_and_no_field_it_does_not_know(local: World) -> None:
    async def reporting(ctx: Context[None]) -> int:
        await ctx.report_progress(1, 2)
        return 1

    local.tool(reporting)
    shape = {"user-agent": JAVA, "content-type": "application/json; charset=utf-8"}
    for version in ("2025-11-25", "2025-06-18"):
        first = local.door.post(request("initialize", initialize(version)), shape | {"mcp-protocol-version": version})
        assert first.result["protocolVersion"] == version
    assert local.get(None, **{"user-agent": JAVA}).status == 405
    assert not polled(local, headers=shape)
    told = local.post(token="t", headers=shape)
    assert {field for event in stream(told).events for field in event.fields} == {"data"}
    assert stream(told).result["structuredContent"] == {"result": 1}


def test_a_client_that_cannot_poll_is_told_when_its_call_takes_too_long(local: World) -> None:
    release = threading.Event()

    def never_done() -> None:
        release.wait(5)

    local.tool(never_done)
    door = Door(local.handler(), context_ms=400)
    answer = door.call("long", version="2025-06-18")
    release.set()
    assert answer.result["isError"]
    assert "was stopped" in answer.text


@pytest.mark.parametrize("arguments", [{"n": "x"}, {"m": 1}])
def test_arguments_that_do_not_fit_are_told_at_once(offering: World, arguments: dict[str, Any]) -> None:
    answer = offering.post(arguments)
    assert answer.headers["content-type"] == "application/json"
    assert answer.result["isError"]
    assert next(iter(arguments)) in answer.text
    assert offering.store.asked == []
    assert offering.queue.call_ids == []


def test_an_unknown_tool_is_an_error_at_once(offering: World) -> None:
    assert offering.post(name="none").error["code"] == -32602
    assert offering.store.asked == []


# B63, A38
def test_parallel_calls_of_clients_with_the_same_ids_have_streams_of_their_own(world: World) -> None:
    world.tool(quick)
    begun = [world.start({"n": n}, request_id=1, token=1) for n in range(5)]
    assert len({each.last_id for each in begun}) == 5
    for _ in range(5):
        world.work()
    results = [world.poll(each.last_id).result["structuredContent"] for each in begun]
    assert results == [{"result": n} for n in range(5)]


# B69, B71: nothing of the POST's connection, and no process, is needed to go on.
def test_whoever_has_the_id_goes_on_in_any_environment(deploy: Callable[..., World]) -> None:
    world = deploy()
    world.tool(quick)
    begun = world.start({"n": 3})
    world.work()
    another = Door(world.handler())
    headers = {"accept": "text/event-stream", "last-event-id": begun.last_id}
    assert stream(another.send("GET", headers=headers)).result["structuredContent"] == {"result": 3}


# B68
def test_what_a_line_parser_could_trip_over_comes_through(world: World) -> None:
    text = "  two\r\nlines\u2028and\u2029more\x85 \x0b\x0c\x1c data: x\n\nid: y\n\n: \ufeff😀" + chr(0)

    async def awkward() -> str:
        return text

    world.tool(awkward, structured_output=False)
    begun = world.start()
    world.work()
    ended = world.poll(begun.last_id)
    assert ended.text == text
    assert {event.name for event in (*begun.events, *ended.events)} == {"message"}
    assert {field for event in ended.events for field in event.fields} <= {"id", "data", "retry"}


# B73
def test_json_of_every_kind_comes_back_as_the_tool_returned_it(world: World) -> None:
    value = json.loads('{"a":0.1,"b":1.0,"c":1,"d":1e308,"e":9007199254740993,"f":"","g":null,"h":[],"i":{"":1}}')

    async def awkward() -> dict[str, Any]:
        return dict(value)

    world.tool(awkward)
    begun = world.start()
    world.work()
    found = world.poll(begun.last_id).result["structuredContent"]
    assert json.dumps(found) == json.dumps(value)
