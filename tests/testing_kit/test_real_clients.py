"""HTTP clients and the official MCP client in front of Lambda events, in process and over a port."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.streamable_http import streamable_http_client

from mcp_stateless.server import MCPServer
from mcp_stateless.settings import Settings
from mcp_stateless.testing import Client, Environment, Fleet, InProcess, Subprocess
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.http_server import HttpServer
from mcp_stateless.testing.transport import LambdaTransport
from mcp_stateless.testing.transport_httpx2 import LambdaTransport as LambdaTransport2

ROOT = Path(__file__).parents[2]
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"accept": "application/json, text/event-stream"}


def make_server() -> MCPServer:
    server = MCPServer("sample", version="1.0", settings=Settings())

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    return server


@pytest.fixture
def fleet() -> Fleet:
    """Four environments that share nothing: each has a server of its own."""
    return Fleet([InProcess(make_server().lambda_handler()) for _ in range(4)])


async def official_sum(environment: Environment, source: Source, stage: str, mode: str) -> object:
    url = "https://mcp.example.com/mcp" if stage == "$default" else f"https://mcp.example.com/{stage}/mcp"
    transport = LambdaTransport2(environment, source, stage=stage)
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        OfficialClient(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["add"]
        result = await client.call_tool("add", {"a": 1, "b": 2})
        return result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
@pytest.mark.parametrize(
    ("source", "stage"),
    [
        ("http_api", "$default"),
        ("http_api", "prod"),
        ("rest_api", "prod"),
        ("function_url", "$default"),
        ("alb", "$default"),
    ],
)
def test_the_official_client_works_over_environments_that_share_nothing(
    fleet: Fleet, source: Source, stage: str, mode: str
) -> None:
    found = asyncio.run(asyncio.wait_for(official_sum(fleet, source, stage, mode), 20))
    assert found in ({"result": 3}, 3)


def test_httpx_clients_reach_the_function_both_ways(fleet: Fleet) -> None:
    with httpx.Client(transport=LambdaTransport(fleet), base_url="https://mcp.example.com") as client:
        assert client.post("/mcp", json=LIST, headers=ACCEPT).json()["result"]["tools"][0]["name"] == "add"
        refused = client.get("/mcp")
        assert refused.status_code == 405
        assert "POST" in refused.headers["allow"]

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=LambdaTransport(fleet), base_url="https://mcp.example.com") as client:
            replies = await asyncio.gather(*(client.post("/mcp", json=LIST, headers=ACCEPT) for _ in range(8)))
            return [reply.status_code for reply in replies]

    assert asyncio.run(ask()) == [200] * 8


def test_httpx2_clients_can_be_synchronous_too(fleet: Fleet) -> None:
    with httpx2.Client(transport=LambdaTransport2(fleet), base_url="https://mcp.example.com") as client:
        assert client.post("/mcp", json=LIST, headers=ACCEPT).status_code == 200


@pytest.mark.parametrize("stage", ["$default", "prod"])
def test_a_port_in_front_of_the_function_speaks_http(fleet: Fleet, stage: str) -> None:
    with HttpServer(fleet, stage=stage) as server, httpx.Client(base_url=server.url) as client:
        assert client.post("/mcp", json=LIST, headers=ACCEPT).json()["result"]["tools"][0]["name"] == "add"
        assert client.get("/mcp").status_code == 405
        note = client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=ACCEPT)
        assert (note.status_code, note.content) == (202, b"")
        assert "content-type" not in note.headers
        assert client.head("/mcp").status_code == 405


@pytest.fixture
def command(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "function.py").write_text(
        "from mcp_stateless.server import MCPServer\n"
        "server = MCPServer('served', version='1')\n"
        "@server.tool()\n"
        "def pid() -> int:\n"
        "    import os\n"
        "    return os.getpid()\n"
        "handler = server.lambda_handler()\n"
    )
    arguments = [sys.executable, "-m", "mcp_stateless.testing", "function:handler", "--environments", "2"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_the_command_serves_separate_processes_until_it_is_interrupted(command: subprocess.Popen[str]) -> None:
    assert command.stdout is not None
    url = command.stdout.readline().strip()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pid", "arguments": {}}}
    with httpx.Client(base_url=url) as client:
        replies = [client.post("/mcp", json=call, headers=ACCEPT).json() for _ in range(4)]
    pids = [int(reply["result"]["content"][0]["text"]) for reply in replies]
    assert len(set(pids)) == 2
    assert command.pid not in pids
    command.send_signal(signal.SIGINT)
    assert command.wait(20) == 0


def test_any_process_may_answer_first(tmp_path: Path) -> None:
    (tmp_path / "function.py").write_text(
        "from mcp_stateless.server import MCPServer\n"
        "server = MCPServer('served', version='1')\n"
        "@server.tool()\n"
        "def add(a: int, b: int) -> int:\n"
        "    return a + b\n"
        "handler = server.lambda_handler()\n"
    )
    processes = [Subprocess("function:handler", cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}) for _ in range(2)]
    with Fleet(processes) as fleet:
        client = Client(fleet)
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert client.initialize()["serverInfo"]["name"] == "served"
