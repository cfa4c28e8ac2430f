"""Real servers behind the entry: warm invocations, several servers in one app, races, every path to the endpoint."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest
from fastapi import FastAPI

from mcp_stateless.aws import LambdaHandler
from mcp_stateless.server import MCPServer
from mcp_stateless.settings import Settings
from mcp_stateless.testing import Client, InProcess
from mcp_stateless.testing.events import JSON_HEADERS, alb_event, function_url_event, http_api_event, rest_api_event

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def server_with(tool_name: str) -> MCPServer:
    server = MCPServer(tool_name, version="1", settings=Settings())

    @server.tool(name=tool_name)
    def tool() -> str:
        return tool_name

    return server


@pytest.mark.parametrize("with_fastapi", [True, False])
def test_one_handler_answers_any_number_of_warm_invocations(with_fastapi: bool) -> None:
    server = server_with("echo")
    client = Client(InProcess(server.lambda_handler(server.app() if with_fastapi else None)))
    assert [[tool["name"] for tool in client.list_tools()] for _ in range(3)] == [["echo"]] * 3


def test_start_hooks_run_once_and_what_they_open_stays_open() -> None:
    server = server_with("echo")
    started: list[dict[str, bool]] = []

    @server.on_start
    async def start() -> None:
        started.append({"open": True})

    client = Client(server)
    for _ in range(3):
        client.ping()
    assert started == [{"open": True}]


def test_two_servers_share_an_app_that_has_routes_of_its_own() -> None:
    app = FastAPI()
    app.include_router(server_with("one").router(), prefix="/a")
    app.include_router(server_with("two").router(), prefix="/b")

    @app.get("/own")
    def own() -> str:
        return "mine"

    handler = LambdaHandler(app, Settings())
    assert [tool["name"] for tool in Client(handler, path="/a/mcp").list_tools()] == ["one"]
    assert [tool["name"] for tool in Client(handler, path="/b/mcp").list_tools()] == ["two"]
    assert handler(http_api_event("GET", "/own"))["body"] == '"mine"'


def test_first_requests_that_race_each_other_are_all_served() -> None:
    handler = server_with("echo").lambda_handler()
    statuses: list[int] = []

    def ask() -> None:
        statuses.append(handler(http_api_event("POST", "/mcp", JSON_HEADERS, LIST))["statusCode"])

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert statuses == [200] * 20


def test_the_handler_can_be_called_from_an_async_test() -> None:
    handler = server_with("echo").lambda_handler()

    async def ask() -> int:
        status: int = handler(http_api_event("POST", "/mcp", JSON_HEADERS, LIST))["statusCode"]
        return status

    assert asyncio.run(ask()) == 200


@pytest.mark.parametrize("with_fastapi", [True, False])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    ("build", "options"),
    [
        (http_api_event, {}),
        (http_api_event, {"stage": "prod"}),
        (http_api_event, {"stage": "mcp"}),
        (rest_api_event, {}),
        (rest_api_event, {"base_path": "/v1", "resource": "/mcp", "domain": "mcp.example.com"}),
        (rest_api_event, {"base_path": "/mcp", "resource": "/mcp", "domain": "mcp.example.com"}),
        (function_url_event, {}),
        (alb_event, {}),
        (alb_event, {"multi_value": True}),
    ],
)
def test_the_endpoint_is_found_behind_every_source_and_prefix(
    build: Any, options: dict[str, Any], path: str, with_fastapi: bool
) -> None:
    server = server_with("echo")
    handler = server.lambda_handler(server.app() if with_fastapi else None)
    result = handler(build("POST", path, JSON_HEADERS, LIST, **options))
    assert result["statusCode"] == 200
    assert '"echo"' in result["body"]


@pytest.mark.parametrize("build", [http_api_event, rest_api_event, function_url_event, alb_event])
def test_a_notification_is_accepted_without_body_and_content_type(build: Any) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    result = server_with("echo").lambda_handler()(build("POST", "/mcp", JSON_HEADERS, note))
    assert (result["statusCode"], result["body"], result["isBase64Encoded"]) == (202, "", False)
    assert "content-type" not in {name.lower() for name in result["headers"]}
    assert "content-type" not in {name.lower() for name in result.get("multiValueHeaders", {})}


def test_the_entry_imports_no_http_server_and_no_aws_client() -> None:
    code = (
        "import sys, mcp_stateless.aws, mcp_stateless.settings\n"
        "print([m for m in ('boto3', 'botocore', 'fastapi', 'uvicorn', 'httpx', 'jsonschema') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
