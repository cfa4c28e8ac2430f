"""Questions to the official Python client 2.x at 2026-07-28: each round in another environment, none remembers."""

from itertools import pairwise

import mcp_types as types
import pytest
from mcp import Client, MCPError

from mcp_stateless.testing import Fleet
from mcp_stateless.testing.events import Source
from tests.clients.environments import Log, Request, process
from tests.clients.python_client import Action, User, talk, text_of

SOURCES: list[Source] = ["http_api", "rest_api", "function_url", "alb"]
PARALLEL_QUESTIONS = ["A verse, please", "Number 0?", "Number 1?", "Number 2?", "Number 3?", "roots"]
PARALLEL_ANSWERS = ["0", "10", "20", "30", "So much depends", "2"]
MOST_CALLS = 1 + 10
"""The first call and the ten rounds that clients give a server."""


def rounds(log: Log, method: str = "tools/call") -> list[Request]:
    """The requests of a call, each of which found another environment than the one before it."""
    found = [request for request in log.requests if request.method == method]
    assert all(first.environment != second.environment for first, second in pairwise(found))
    return found


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("action", "told"), [("accept", "blue"), ("decline", "decline"), ("cancel", "cancel")])
def test_the_user_may_accept_decline_and_cancel(
    fleet: Fleet, log: Log, source: Source, action: Action, told: str
) -> None:
    user = User(action)
    result = talk(fleet, "auto", lambda client: client.call_tool("asks"), user=user, source=source)
    assert text_of(result) == told
    assert user.seen == ["Which colour?"]
    assert len(rounds(log)) == 2


def test_a_function_in_a_thread_asks_as_well(fleet: Fleet, log: Log) -> None:
    result = talk(fleet, "auto", lambda client: client.call_tool("asks_from_a_thread"), user=User())
    assert text_of(result) == "blue"
    assert len(rounds(log)) == 2


def test_the_user_may_be_sent_to_a_page(fleet: Fleet) -> None:
    result = talk(fleet, "auto", lambda client: client.call_tool("asks_to_open_a_page"), user=User())
    assert text_of(result) == "accept"


def test_a_second_question_may_depend_on_the_first_answer(fleet: Fleet, log: Log) -> None:
    user = User()
    result = talk(fleet, "auto", lambda client: client.call_tool("asks_twice"), user=user)
    assert text_of(result) == "blue, then green"
    assert user.seen == ["Which colour?", "Which colour after blue?"]
    assert len(rounds(log)) == 3


def test_the_clients_model_is_asked(fleet: Fleet) -> None:
    result = talk(fleet, "auto", lambda client: client.call_tool("samples"), user=User())
    assert text_of(result) == "poet: So much depends"


def test_the_clients_folders_are_asked_for(fleet: Fleet) -> None:
    result = talk(fleet, "auto", lambda client: client.call_tool("lists_roots"), user=User())
    assert result.structured_content == ["file:///home/a", "file:///home/b"]


@pytest.mark.parametrize("grouped", [False, True], ids=["gather", "task group"])
@pytest.mark.parametrize("seed", range(6))
def test_questions_in_parallel_may_come_in_another_order_in_every_round(
    fleet: Fleet, log: Log, seed: int, grouped: bool
) -> None:
    user = User()
    arguments = {"seed": seed, "grouped": grouped}
    result = talk(fleet, "auto", lambda client: client.call_tool("asks_in_parallel", arguments), user=user)
    assert result.structured_content == PARALLEL_ANSWERS
    assert sorted(user.seen) == PARALLEL_QUESTIONS
    assert 2 <= len(rounds(log)) <= MOST_CALLS


def test_more_questions_at_once_than_a_client_allows_rounds_are_all_answered(fleet: Fleet, log: Log) -> None:
    result = talk(fleet, "auto", lambda client: client.call_tool("asks_many", {"many": 12}), user=User())
    assert result.structured_content == [str(10 * index) for index in range(12)]
    assert len(rounds(log)) <= MOST_CALLS


def test_a_step_that_is_under_way_when_another_task_asks_is_not_done_again(fleet: Fleet, log: Log) -> None:
    result = talk(fleet, "auto", lambda client: client.call_tool("pays_and_asks"), user=User())
    assert text_of(result) == str(rounds(log)[0].environment)


def test_questions_leave_no_error_in_the_operators_log(capfd: pytest.CaptureFixture[str]) -> None:
    with process(0) as environment:
        talk(environment, "auto", lambda client: client.call_tool("asks_many", {"many": 3}), user=User())
    assert "Traceback" not in capfd.readouterr().err


def test_a_step_is_done_once_and_its_value_is_there_in_every_round(fleet: Fleet, log: Log) -> None:
    user = User()
    result = talk(fleet, "auto", lambda client: client.call_tool("books"), user=user)
    [question] = user.seen
    reservation = question.removeprefix("Book ").removesuffix("?")
    assert text_of(result) == f"booked {reservation}"
    assert len(rounds(log)) == 2


def test_prompts_ask_as_well(fleet: Fleet, log: Log) -> None:
    result = talk(fleet, "auto", lambda client: client.get_prompt("paint"), user=User())
    content = result.messages[0].content
    assert isinstance(content, types.TextContent)
    assert content.text == "Paint: blue"
    assert len(rounds(log, "prompts/get")) == 2


def test_resource_templates_ask_as_well(fleet: Fleet, log: Log) -> None:
    result = talk(fleet, "auto", lambda client: client.read_resource("letters://Ada"), user=User())
    [contents] = result.contents
    assert isinstance(contents, types.TextResourceContents)
    assert contents.text == "Dear Ada, blue"
    assert len(rounds(log, "resources/read")) == 2


@pytest.mark.parametrize("tool", ["asks", "samples", "lists_roots", "asks_to_open_a_page"])
def test_a_client_that_cannot_be_asked_is_told_what_it_would_need(fleet: Fleet, tool: str) -> None:
    async def call(client: Client) -> MCPError:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(tool)
        return caught.value

    error = talk(fleet, "auto", call).error
    assert error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert isinstance(error.data, dict)
    assert list(error.data["requiredCapabilities"]) == [
        {"samples": "sampling", "lists_roots": "roots"}.get(tool, "elicitation")
    ]


def test_a_legacy_call_cannot_ask_and_says_so_at_once(fleet: Fleet, log: Log) -> None:
    user = User()
    result = talk(fleet, "legacy", lambda client: client.call_tool("asks"), user=user)
    assert result.is_error
    assert "2026-07-28" in text_of(result)
    assert user.seen == []
    assert len(rounds(log)) == 1
