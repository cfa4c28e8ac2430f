"""The limits that the README owns up to are the limits there are: one that falls is to be taken out of it."""

import threading
from pathlib import Path
from typing import Final

import pytest

from mcp_stateless import Context, MCPServer
from mcp_stateless.settings import Settings
from mcp_stateless.testing import Client, InProcess, RequestError
from mcp_stateless.testing.events import http_api_event
from tests.docs.tables import template_parameters

DEPLOYING: Final = Path(__file__).parents[2] / "docs" / "deploying.md"


def make_server(**settings: object) -> MCPServer:
    server = MCPServer("limits", version="1", settings=Settings.model_validate(settings))

    @server.tool()
    def caller(ctx: Context) -> str:
        return "nobody" if ctx.principal.is_anonymous else ctx.principal.subject

    @server.tool()
    def characters(count: int) -> str:
        return "x" * count

    return server


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_hold_and_no_session_to_end(method: str) -> None:
    result = InProcess(make_server().lambda_handler()).invoke(http_api_event(method, "/mcp"))

    assert result["statusCode"] == 405


def test_nothing_is_promised_that_would_have_to_be_pushed() -> None:
    capabilities = Client(make_server()).initialize()["capabilities"]

    assert capabilities == {"tools": {}}


def test_set_level_is_accepted_where_there_are_log_messages_and_unknown_elsewhere() -> None:
    assert Client(make_server(log_messages="info")).request("logging/setLevel", {"level": "error"}) == {}
    with pytest.raises(RequestError, match="Method not found"):
        Client(make_server()).request("logging/setLevel", {"level": "error"})


def test_every_caller_is_anonymous_whatever_it_sends() -> None:
    client = Client(make_server(), headers={"authorization": "Bearer token", "mcp-session-id": "made up"})

    assert client.call_tool("caller").text == "nobody"


def test_a_plain_function_goes_on_after_its_time_while_the_caller_has_its_answer() -> None:
    server, release, ended = make_server(), threading.Event(), threading.Event()

    @server.tool()
    def stuck() -> str:
        release.wait(10)
        ended.set()
        return "too late"

    result = Client(server, context_ms=400).call_tool("stuck")

    assert result.is_error
    assert "Lambda function's timeout" in result.text
    assert not ended.is_set()
    release.set()
    assert ended.wait(10)


def test_a_result_that_no_reply_can_carry_becomes_an_error_that_says_so() -> None:
    result = Client(make_server(), source="alb").call_tool("characters", {"count": 1_100_000})

    assert result.is_error
    assert "is too large" in result.text


@pytest.mark.parametrize(
    ("allowed", "origin", "status"),
    [
        ("", "http://localhost:5173", 200),
        ("", "https://app.example.com", 403),
        ("none", "http://localhost:5173", 403),
        ("https://app.example.com", "https://app.example.com", 200),
    ],
)
def test_pages_may_call_from_listed_origins_and_by_default_from_this_machine(
    allowed: str, origin: str, status: int
) -> None:
    settings = Settings.from_environment({"MCP_ALLOWED_ORIGINS": allowed})
    handler = InProcess(MCPServer("pages", version="1", settings=settings).lambda_handler())
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    result = handler.invoke(
        http_api_event("POST", "/mcp", headers={"content-type": "application/json", "origin": origin}, body=body)
    )

    assert result["statusCode"] == status


def test_what_the_page_on_deploying_says_of_polling_is_in_the_template() -> None:
    page = DEPLOYING.read_text(encoding="utf-8")

    for name in ("Polling", "WorkerTimeout", "WorkerMemorySize", "WorkerReservedConcurrency", "AlarmTopic"):
        assert name in template_parameters()
        assert f"`{name}" in page
