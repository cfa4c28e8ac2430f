"""Servers inside an application of somebody else, and pages of FastAPI that must not show up under the MCP path."""

import json
from typing import Any

import pytest
from fastapi import FastAPI

from mcp_stateless import MCPServer
from mcp_stateless.aws import LambdaHandler
from tests.http.door import Door, initialize, request


def serving(name: str) -> MCPServer:
    server = MCPServer(name, "1")

    @server.tool(f"{name}_tool")
    def tool() -> str:
        """Say who it is."""
        return name

    return server


def parent() -> Door:
    # B02
    app = FastAPI()
    first, second = serving("first"), serving("second")

    @app.get("/own")
    def own() -> dict[str, str]:
        return {"own": "route"}

    app.include_router(first.router(), prefix="/a")
    app.include_router(second.router(), prefix="/b")
    return Door(LambdaHandler(app, first.settings))


@pytest.mark.parametrize(("path", "name"), [("/a/mcp", "first"), ("/b/mcp", "second"), ("/b/mcp/", "second")])
def test_two_servers_in_one_application_keep_to_themselves(path: str, name: str) -> None:
    door = parent()
    for _ in range(2):
        listed = door.post(request("tools/list"), path=path)
        assert [tool["name"] for tool in listed.result["tools"]] == [f"{name}_tool"]
        assert (
            door.post(request("initialize", initialize("2025-11-25")), path=path).result["serverInfo"]["name"] == name
        )
    assert door.send("GET", "/own").json == {"own": "route"}
    assert door.send("GET", path).status == 405


# B22
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "TRACE", "HEAD"])
@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}, {"content-type": "application/json"}])
def test_under_the_path_of_a_server_no_page_of_the_framework_is_shown(method: str, headers: dict[str, str]) -> None:
    answer = parent().send(method, "/a/mcp", headers, "{}" if method == "POST" else None)
    assert answer.status >= 400
    if answer.body:
        message: dict[str, Any] = json.loads(answer.body)
        assert message["jsonrpc"] == "2.0"
        assert "detail" not in message


def test_an_author_may_add_routes_to_a_servers_own_app() -> None:
    server = serving("first")
    app = server.app()

    @app.get("/own")
    def own() -> str:
        return "route"

    door = Door(server.lambda_handler(app))
    assert door.send("GET", "/own").json == "route"
    assert door.post(request("tools/list")).status == 200
    assert door.send("GET", "/health").json["status"] == "ok"
    assert "/mcp" not in app.openapi()["paths"]


# B01
def test_one_handler_serves_any_number_of_requests_and_starts_once() -> None:
    server = serving("first")
    starts = []
    server.on_start(lambda: starts.append(1))
    door = Door(server.lambda_handler(server.app()))
    assert [door.post(request("tools/list")).status for _ in range(3)] == [200] * 3
    assert starts == [1]


def test_a_start_that_failed_is_tried_again_by_the_next_request() -> None:
    server = serving("first")
    starts = []

    @server.on_start
    def start() -> None:
        starts.append(1)
        if len(starts) == 1:
            raise OSError("not yet")

    door = Door(server.lambda_handler())
    assert [door.post(request("tools/list")).status for _ in range(3)] == [500, 200, 200]
    assert len(starts) == 2
