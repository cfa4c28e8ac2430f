"""Official clients in processes of their own, over HTTP: the Python SDK 1.29 and both TypeScript SDKs, in both eras."""

from itertools import pairwise
from typing import Any

import pytest

from mcp_stateless.testing import Fleet
from mcp_stateless.testing.events import Source
from tests.clients.environments import Log
from tests.clients.other_clients import CLIENTS, PLAIN, QUESTIONS, Conversations, converse

# The first test of a client may have to install it; that time is bounded where it is spent.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(30, func_only=True)]

BLUE: dict[str, Any] = {"text": "blue", "seen": ["Which colour?"]}
PARALLEL_ANSWERS = ["0", "10", "20", "30", "So much depends", "2"]
PARALLEL_QUESTIONS = ["A verse, please", "Number 0?", "Number 1?", "Number 2?", "Number 3?", "roots"]
ASKED = CLIENTS["TypeScript 2 auto"]
MOST_CALLS = 1 + 10
"""The first call and the ten rounds that clients give a server."""


@pytest.fixture(scope="module", params=CLIENTS)
def conversations(request: pytest.FixtureRequest, processes: Fleet, log: Log) -> Conversations:
    return converse(CLIENTS[request.param], PLAIN, processes, log)


@pytest.fixture(scope="module")
def questions(processes: Fleet, log: Log) -> Conversations:
    return converse(ASKED, QUESTIONS, processes, log)


def test_the_client_learns_what_the_server_is(conversations: Conversations) -> None:
    assert conversations.value("connect") == {
        "version": conversations.client.revision,
        "server": {"name": "clients", "version": "1.2.3", "title": "For clients"},
        "instructions": "Call the tools.",
        "capabilities": ["completions", "prompts", "resources", "tools"],
    }


def test_the_client_lists_everything(conversations: Conversations) -> None:
    found = conversations.value("list")
    assert found["tools"][:3] == ["measure", "shout", "fails"]
    assert found["resources"] == ["notes://today"]
    assert found["templates"] == ["letters://{to}", "cities://{city}"]
    assert found["prompts"] == ["review", "paint"]


def test_a_call_gives_structured_content_that_fits_the_schema(conversations: Conversations) -> None:
    assert conversations.value("structured")["structured"] == {"words": 3, "characters": 16}


def test_a_call_gives_text_alone(conversations: Conversations) -> None:
    assert conversations.value("text") == {"text": "GRÖSSER"}


def test_a_tool_error_is_a_result_for_the_model(conversations: Conversations) -> None:
    assert conversations.value("failure") == {"text": "There is nothing to be had", "isError": True}


def test_what_does_not_exist_is_an_error_with_the_code_of_its_era(conversations: Conversations) -> None:
    assert conversations.value("missing") == [-32602, conversations.client.missing_resource, -32602]


def test_an_argument_that_a_header_repeats_arrives(conversations: Conversations) -> None:
    assert conversations.value("header")["text"] == "Rain in Zürich"
    call = conversations.requests("header")[-1]
    assert ("mcp-param-city" in call.headers) == conversations.client.modern


def test_the_client_reads_resources(conversations: Conversations) -> None:
    assert conversations.value("read") == ["Write tests", "Oslo is a city"]


def test_the_client_gets_a_prompt(conversations: Conversations) -> None:
    assert conversations.value("prompt") == ["Please review: this"]


def test_the_client_completes_an_argument(conversations: Conversations) -> None:
    assert conversations.value("complete") == ["Leipzig", "Lisbon", "London"]


def test_progress_reaches_the_callback_in_order(conversations: Conversations) -> None:
    found = conversations.value("progress")
    assert found["text"] == "3"
    assert found["seen"] == [[1, 3, "at 1"], [2, 3, "at 2"], [3, 3, "at 3"]]


def test_each_request_finds_another_environment_and_there_is_no_session_to_end(conversations: Conversations) -> None:
    assert conversations.value("often") == list("01234567")
    requests = conversations.requests("often")
    posts = [str(request) for request in requests if request.verb == "POST" and request.method != "tools/list"]
    assert posts == [*conversations.client.connecting, *["tools/call"] * 8]
    # A legacy client tries once whether there is a stream to listen to; nobody has a session to delete.
    others = [str(request) for request in requests if request.verb != "POST"]
    assert others == ["GET 405"] * len(others)
    assert len(others) <= (0 if conversations.client.modern else 1)
    assert {request.environment for request in requests if request.method == "tools/call"} == {0, 1, 2, 3}
    assert not [request for request in requests if "mcp-session-id" in request.headers]


def test_a_question_is_answered_or_refused_at_once(conversations: Conversations) -> None:
    found = conversations.value("accept")
    if conversations.client.modern:
        assert BLUE.items() <= found.items()
    else:
        assert found["isError"]
        assert "2026-07-28" in found["text"]
        assert not found.get("seen")


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("decline", BLUE | {"text": "decline"}),
        ("cancel", BLUE | {"text": "cancel"}),
        ("page", {"text": "accept", "seen": ["Please pay"]}),
        ("twice", {"text": "blue, then green", "seen": ["Which colour?", "Which colour after blue?"]}),
        ("sample", {"text": "poet: So much depends", "seen": ["A verse, please"]}),
        ("prompt_that_asks", BLUE | {"text": "Paint: blue"}),
        ("template_that_asks", BLUE | {"text": "Dear Ada, blue"}),
    ],
)
def test_questions_are_put_and_answered(questions: Conversations, scenario: str, expected: dict[str, Any]) -> None:
    found = questions.value(scenario)
    assert expected.items() <= found.items()


def test_the_clients_folders_are_asked_for(questions: Conversations) -> None:
    assert questions.value("roots")["structured"] == ["file:///home/a", "file:///home/b"]


@pytest.mark.parametrize("scenario", ["gathered", "grouped"])
def test_questions_in_parallel_may_come_in_another_order_in_every_round(
    questions: Conversations, scenario: str
) -> None:
    found = questions.value(scenario)
    assert found["structured"] == PARALLEL_ANSWERS
    assert sorted(found["seen"]) == PARALLEL_QUESTIONS


def test_a_step_is_done_once_and_its_value_is_there_in_every_round(questions: Conversations) -> None:
    found = questions.value("step")
    [question] = found["seen"]
    assert found["text"] == "booked " + question.removeprefix("Book ").removesuffix("?")


def test_more_questions_at_once_than_a_client_allows_rounds_are_all_answered(questions: Conversations) -> None:
    assert questions.value("many")["structured"] == [str(10 * index) for index in range(12)]


@pytest.mark.parametrize("scenario", QUESTIONS)
def test_each_round_is_answered_by_another_environment_than_the_one_before_it(
    questions: Conversations, scenario: str
) -> None:
    calls = [request for request in questions.requests(scenario) if request.method != "server/discover"]
    rounds = [request for request in calls if request.method != "tools/list"]
    assert 2 <= len(rounds) <= MOST_CALLS
    assert all(first.environment != second.environment for first, second in pairwise(rounds))


@pytest.mark.parametrize("source", ["rest_api", "function_url", "alb"])
@pytest.mark.parametrize("name", ["TypeScript 1", "TypeScript 2 auto"])
def test_every_event_source_carries_the_client(processes: Fleet, log: Log, name: str, source: Source) -> None:
    client = CLIENTS[name]
    found = converse(client, ["connect", "structured", "header", "accept"], processes, log, source)
    assert found.value("connect")["version"] == client.revision
    assert found.value("structured")["structured"] == {"words": 3, "characters": 16}
    assert found.value("header")["text"] == "Rain in Zürich"
    assert found.value("accept").get("isError", False) != client.modern
