"""HTTP methods and paths of the endpoint, and the health path."""

from typing import Any

import pytest

from mcp_stateless import MCPServer, Settings
from tests.http.door import MODERN, Door, Weight, request

LIST = request("tools/list")


def server(**options: Any) -> MCPServer:
    made = MCPServer("sample", "1.0.0", **options)

    @made.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return made


# B12, B138
@pytest.mark.parametrize(
    "headers",
    [
        {"accept": "text/event-stream"},
        {"accept": "*/*"},
        {},
        {"mcp-session-id": "unknown"},
        {"accept": "text/event-stream", "last-event-id": "7"},
        {"accept": "text/event-stream", "mcp-protocol-version": MODERN},
        {"content-type": "text/plain", "mcp-protocol-version": "1999-01-01"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD"])
def test_only_post_is_served_and_everything_else_is_told_so_at_once(
    weight: Weight, method: str, headers: dict[str, str]
) -> None:
    started = []
    made = server()
    made.on_start(lambda: started.append(1))
    answer = Door(weight(made)).send(method, "/mcp", headers)
    assert answer.status == 405
    assert "POST" in answer.headers["allow"].split(", ")
    assert answer.body == b""
    assert "content-type" not in answer.headers
    assert not started


# B15
@pytest.mark.parametrize("stage", ["$default", "prod"])
@pytest.mark.parametrize("path", ["/health", "/health/"])
def test_health_is_public_small_and_true(weight: Weight, path: str, stage: str) -> None:
    made = server()
    made.on_start(lambda: 1 / 0)
    door = Door(weight(made), stage=stage)
    answer = door.send("GET", path)
    assert answer.status == 200
    assert answer.json == {"status": "ok", "name": "sample", "version": "1.0.0"}
    head = door.send("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert door.send("POST", path, {"content-type": "application/json"}, "{}").status == 405


def test_the_health_path_can_be_chosen(weight: Weight) -> None:
    door = Door(weight(server(settings=Settings(health_path="/up"))))
    assert door.send("GET", "/up").status == 200
    assert door.send("GET", "/health").status == 404


# B16
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(("source", "stage"), [("http_api", "$default"), ("http_api", "prod"), ("rest_api", "prod")])
def test_both_spellings_of_the_path_are_served_directly(weight: Weight, source: str, stage: str, path: str) -> None:
    answer = Door(weight(server()), source, stage=stage).post(LIST, path=path)
    assert answer.status == 200
    assert "location" not in answer.headers


@pytest.mark.parametrize("path", ["//mcp", "/mcp//", "/mcpx", "/", "/MCP", "/mcp/tools"])
def test_other_paths_are_never_a_redirect(weight: Weight, path: str) -> None:
    answer = Door(weight(server())).post(LIST, path=path)
    assert answer.status in (200, 404)
    assert "location" not in answer.headers


@pytest.mark.parametrize("path", ["", "/deep/er/mcp"])
def test_the_path_can_be_chosen(weight: Weight, path: str) -> None:
    door = Door(weight(server(settings=Settings(path=path))))
    assert door.post(LIST, path=path or "/").status == 200
    assert door.post(LIST, path="/mcp").status == 404


# B17
@pytest.mark.parametrize(
    "host",
    [
        "abc123.execute-api.us-east-1.amazonaws.com",
        "abc123.lambda-url.us-east-1.on.aws",
        "mcp.example.com",
        "mcp.example.com:443",
    ],
)
def test_every_host_name_is_served(weight: Weight, host: str) -> None:
    assert Door(weight(server())).post(LIST, {"host": host}).status == 200
