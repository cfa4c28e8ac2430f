"""The small client against a real server, in every source and revision."""

import base64
import json
from typing import Any

import pytest

from mcp_stateless.context import Context
from mcp_stateless.errors import ToolError
from mcp_stateless.server import MCPServer
from mcp_stateless.settings import Settings
from mcp_stateless.testing import Client, InProcess, RequestError
from mcp_stateless.testing.client import header_value
from mcp_stateless.testing.events import Source

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


def make_server(**settings: Any) -> MCPServer:
    server = MCPServer("sample", version="1.0", settings=Settings(**settings))

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool(name="天気")
    def weather(city: str) -> str:
        return f"{city}: 晴れ"

    @server.tool()
    def fail() -> str:
        raise ToolError("no such order")

    @server.tool()
    async def count(to: int, ctx: Context[Any]) -> int:
        for number in range(to):
            await ctx.report_progress(number, to)
        return to

    @server.resource("doc://guide")
    def guide() -> str:
        return "read me"

    @server.resource("doc://{name}/text")
    def document(name: str) -> str:
        return name

    @server.prompt()
    def review(code: str) -> str:
        return f"Review {code}"

    @server.completion()
    def complete(ref: Any, argument: Any, context: Any) -> list[str]:
        return [f"{argument.value}1"]

    return server


@pytest.mark.parametrize("source", ["http_api", "rest_api", "function_url", "alb"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_works_through_every_source_and_revision(source: Source, revision: str) -> None:
    client = Client(make_server(), source=source, protocol_version=revision)
    if revision == "2026-07-28":
        assert revision in client.discover()["supportedVersions"]
    else:
        assert client.initialize()["protocolVersion"] == revision
        client.ping()
    assert {"add", "天気"} <= {tool["name"] for tool in client.list_tools()}
    assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
    assert client.call_tool("天気", {"city": "東京"}).text == "東京: 晴れ"
    assert [item["uri"] for item in client.list_resources()] == ["doc://guide"]
    assert [item["uriTemplate"] for item in client.list_resource_templates()] == ["doc://{name}/text"]
    assert client.read_resource("doc://guide")[0]["text"] == "read me"
    assert client.read_resource("doc://日本/text")[0]["text"] == "日本"
    assert [item["name"] for item in client.list_prompts()] == ["review"]
    message = client.get_prompt("review", {"code": "x = 1"})["messages"][0]
    assert message["content"]["text"] == "Review x = 1"
    if revision > "2024-11-05":
        assert client.complete({"type": "ref/prompt", "name": "review"}, "code", "x")["values"] == ["x1"]


def test_a_failed_tool_is_a_result_and_a_refused_request_an_error() -> None:
    client = Client(make_server())
    failed = client.call_tool("fail")
    assert failed.is_error
    assert failed.text == "no such order"
    assert failed.structured_content is None
    with pytest.raises(RequestError) as caught:
        client.call_tool("missing")
    assert (caught.value.code, caught.value.status) == (-32602, 200)


def test_progress_arrives_as_notifications_when_it_is_asked_for() -> None:
    client = Client(make_server())
    assert client.call_tool("count", {"to": 3}).notifications == []
    result = client.call_tool("count", {"to": 3}, progress_token="p")
    assert [note["params"]["progress"] for note in result.notifications] == [0, 1, 2]
    assert {note["params"]["progressToken"] for note in result.notifications} == {"p"}
    assert result.structured_content == {"result": 3}


def test_lists_are_walked_page_by_page() -> None:
    names = [tool["name"] for tool in Client(make_server(page_size=1)).list_tools()]
    assert sorted(names) == sorted(set(names))
    assert len(names) == 4


def test_a_list_that_never_ends_is_noticed() -> None:
    def handler(event: Any, context: object) -> dict[str, Any]:
        message = json.loads(event["body"])
        result = {"tools": [], "nextCursor": "again"}
        return {"statusCode": 200, "body": json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})}

    with pytest.raises(AssertionError, match="did not end"):
        Client(handler).list_tools()


@pytest.mark.parametrize("body", ["", "Internal Server Error", "[]", '{"message": "no"}'])
def test_a_reply_without_an_answer_is_an_error_with_its_status(body: str) -> None:
    client = Client(InProcess(lambda event, context: {"statusCode": 503, "body": body}))
    with pytest.raises(RequestError) as caught:
        client.ping()
    assert (caught.value.code, caught.value.status) == (None, 503)
    with pytest.raises(RequestError):
        client.notify("notifications/initialized")


def test_event_streams_are_read_as_the_standard_says() -> None:
    answer = '{"jsonrpc": "2.0",\r\ndata: "id": 1, "result": {"text": "\u2028"}}'
    stream = f': comment\r\n\r\nid: 1\r\ndata: \r\n\r\ndata: {{"method": "note"}}\r\n\r\ndata: {answer}\r\n\r\n'
    result = {"statusCode": 200, "headers": {"content-type": "text/event-stream"}, "body": stream}
    reply = Client(InProcess(lambda event, context: result)).exchange("any/method")
    assert reply.result == {"text": "\u2028"}
    assert reply.notifications == [{"method": "note"}]


def test_headers_of_the_client_and_of_a_call_reach_the_server() -> None:
    seen: list[dict[str, str]] = []

    def handler(event: Any, context: object) -> dict[str, Any]:
        seen.append(event["headers"])
        return {"statusCode": 200, "body": json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})}

    Client(handler, headers={"authorization": "Bearer a"}).call_tool("x", headers={"mcp-param-region": "eu"})
    assert seen[0]["authorization"] == "Bearer a"
    assert seen[0]["mcp-param-region"] == "eu"


@pytest.mark.parametrize("value", ["add", "two words", "a/b?c"])
def test_plain_header_values_are_sent_as_they_are(value: str) -> None:
    assert header_value(value) == value


@pytest.mark.parametrize("value", ["天気", " padded ", "tab\t", "=?base64?YWRk?=", "line\nbreak"])
def test_other_header_values_are_sent_in_base64(value: str) -> None:
    encoded = header_value(value)
    assert encoded.startswith("=?base64?")
    assert base64.b64decode(encoded.removeprefix("=?base64?").removesuffix("?=")).decode() == value
