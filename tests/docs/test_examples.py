"""The example files do what the pages say of them, through Lambda events."""

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from docs.examples import caching, detach, own_app, progress, questions, results, startup
from mcp_stateless import MCPServer
from mcp_stateless.testing import Client
from tests.docs.polling import call_and_poll

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples"
MODERN: Final = "2026-07-28"
ASKED: Final[dict[str, Any]] = {"elicitation": {"form": {}}}
LARGE: Final[dict[str, Any]] = {"action": "accept", "content": {"size": "large"}}


def call(server: MCPServer, name: str, arguments: dict[str, Any] | None = None) -> Any:
    return Client(server).call_tool(name, arguments)


@pytest.mark.parametrize("name", ["add_up", "add_up_in_a_thread"])
def test_progress_is_reported_with_and_without_await(name: str) -> None:
    result = Client(progress.server).call_tool(name, {"numbers": [1, 2, 3]}, progress_token="p")

    assert result.structured_content == {"result": 6.0}
    assert [item["params"]["progress"] for item in result.notifications] == [1, 2, 3]


def ask(name: str, arguments: dict[str, Any], answers: dict[str, Any], server: MCPServer | None = None) -> Any:
    """Call a tool, of `questions.py` by default, and answer what it asks by the names of the questions."""
    client = Client(server or questions.server, protocol_version=MODERN, capabilities=ASKED)
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    asked = client.request("tools/call", params)
    assert asked["resultType"] == "input_required"
    assert set(asked["inputRequests"]) == set(answers)
    answered = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
    return client.request("tools/call", answered)["content"][0]["text"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (LARGE, "Ordered: large oolong"),
        ({"action": "accept", "content": {"size": "small", "gift": True}}, "Ordered: small oolong, wrapped"),
        ({"action": "decline"}, "Nothing was ordered: the user chose to decline"),
    ],
)
def test_a_question_is_answered_in_the_next_request(answer: dict[str, Any], said: str) -> None:
    assert ask("order_tea", {"kind": "oolong"}, {"size": answer}) == said


def test_a_client_that_cannot_be_asked_still_gets_on_with_an_argument() -> None:
    assert ask("order_coffee", {}, {"size": LARGE}) == "Ordered: large coffee"
    assert call(questions.server, "order_coffee", {"size": "small"}).text == "Ordered: small coffee"
    assert call(questions.server, "order_coffee").text == "Say a size: small or large"


def test_a_legacy_client_is_told_at_once_that_it_cannot_be_asked() -> None:
    result = call(questions.server, "order_tea", {"kind": "oolong"})

    assert result.is_error
    assert result.text.startswith("This call cannot ask the user: that takes a client at 2026-07-28")


def test_a_step_is_done_once_although_the_function_runs_twice() -> None:
    before = len(questions.ORDERS)

    said = ask("order_and_rate", {}, {"content": {"action": "accept", "content": {"agreed": True}}})

    assert len(questions.ORDERS) == before + 1
    assert said == f"order {before + 1}: the user is content"


def test_questions_in_parallel_come_in_one_round() -> None:
    small = {"action": "accept", "content": {"size": "small"}}

    assert ask("order_for_two", {}, {"first": LARGE, "second": small}) == "Ordered: large, small"


def test_an_explicit_question_gives_back_its_state_and_the_raw_answer() -> None:
    assert ask("order_by_hand", {}, {"size": LARGE}) == f"Ordered: 2 cups, {LARGE}"


def test_a_tool_that_detaches_goes_on_at_once_where_nobody_can_come_back() -> None:
    answer = {"action": "accept", "content": {"months": 3}}

    assert ask("report", {}, {"months": answer}, detach.server) == "A report on 3 months"


def test_data_content_and_whole_results_arrive_as_the_page_says() -> None:
    data, content, whole = (call(results.server, name) for name in ("corners", "drawing", "measured"))

    assert data.structured_content == {"result": [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 2.0}]}
    assert [block["type"] for block in content.content] == ["text", "image", "resource_link"]
    assert content.structured_content is None
    assert whole.structured_content == {"x": 0.5, "y": 1.0}
    assert whole.text == "In the middle"
    assert whole.result["_meta"] == {"example.com/unit": "m"}


def test_clients_are_told_how_long_they_may_keep_lists_and_resources() -> None:
    client = Client(caching.server, protocol_version=MODERN)

    tools = client.request("tools/list", {})
    moon = client.request("resources/read", {"uri": "almanac://moon"})

    assert (tools["ttlMs"], tools["cacheScope"]) == (3_600_000, "public")
    assert (moon["ttlMs"], moon["cacheScope"]) == (86_400_000, "public")


def test_a_plain_text_is_content_alone() -> None:
    result = call(caching.server, "tides", {"port": "Leer"})

    assert result.text == "Leer: 14:05"
    assert result.structured_content is None


def test_the_start_hook_ran_before_the_first_call() -> None:
    assert Client(startup.lambda_handler).call_tool("number_of", {"name": "Ada"}).text == "36"


def test_two_servers_and_a_route_of_its_own_share_an_app() -> None:
    handler = own_app.lambda_handler

    assert Client(handler, path="/numbers/mcp").call_tool("double", {"value": 4}).text == "8"
    assert Client(handler, path="/words/mcp").call_tool("shout", {"text": "ja"}).text == "JA"


def test_a_long_call_is_polled_to_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_POLLING", "memory")
    server = runpy.run_path(str(EXAMPLES / "survey.py"))["server"]

    outcome = call_and_poll(server, "simulate", {"runs": 20, "pause_ms": 5})

    assert outcome.structured_content["runs"] == 20
    assert outcome.priming.startswith(b"id: ")
    assert outcome.gets >= 1
    assert outcome.progress == sorted(outcome.progress)


def test_a_client_at_2026_07_28_repeats_a_long_call_until_its_result_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_POLLING", "memory")
    server = runpy.run_path(str(EXAMPLES / "survey.py"))["server"]

    result = Client(server, protocol_version=MODERN).call_tool("simulate", {"runs": 5, "pause_ms": 5})

    assert result.structured_content["runs"] == 5
    assert {"simulate", "check_call"} == {tool["name"] for tool in Client(server).list_tools()}


def test_a_server_without_2026_07_28_is_polled_by_a_client_that_would_choose_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_POLLING", "memory")
    monkeypatch.setenv("MCP_REVISIONS", "2024-11-05,2025-03-26,2025-06-18,2025-11-25")
    server = runpy.run_path(str(EXAMPLES / "survey.py"))["server"]

    outcome = call_and_poll(server, "simulate", {"runs": 20, "pause_ms": 5}, mode="auto")

    assert outcome.structured_content["runs"] == 20
    assert outcome.gets >= 1


def test_a_long_call_runs_in_place_where_nothing_is_set_up_for_it() -> None:
    server = runpy.run_path(str(EXAMPLES / "survey.py"))["server"]

    assert Client(server).call_tool("simulate", {"runs": 2, "pause_ms": 1}).structured_content["runs"] == 2
