"""`mcp-stateless dev` serves the example to the official client, and says what is wrong when it cannot."""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import anyio
import pytest
from mcp import Client

from tests.calls.engine import running
from tests.project.development_server import serving

ROOT: Final = Path(__file__).parents[2]
TOOLS: Final = ["list_documents", "search_documents", "profile_csv", "query_csv", "estimate_uncertainty"]
LONG_CALL: Final = {"csv": "x\n" + "".join(f"{number % 97}\n" for number in range(500)), "column": "x"}


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcp_stateless.cli", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


async def names_of_tools(url: str) -> list[str]:
    with anyio.fail_after(20):
        async with Client(url) as client:
            return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("options", [(), ("--reload",)], ids=["plain", "reload"])
def test_the_example_is_served_to_the_official_client_on_the_printed_address(options: tuple[str, ...]) -> None:
    with serving(ROOT, *options) as server:
        assert server.url.endswith("/mcp")
        assert f"claude mcp add --transport http csv-toolbox {server.url}" in server.banner
        snippet = json.dumps({"mcpServers": {"csv-toolbox": {"type": "http", "url": server.url}}})
        assert snippet in server.banner

        names = anyio.run(names_of_tools, server.url)

        assert names == [*TOOLS, "check_call"]
        assert "kept in memory" in server.banner
        assert all(f"\n  {name} " in server.banner for name in names)


async def call_a_long_tool(url: str) -> tuple[float, list[float]]:
    """The value that came back, and the progress before it. This client polls."""
    reported: list[float] = []

    async def seen(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    with anyio.fail_after(30):
        async with Client(url, mode="legacy") as client:
            result = await client.call_tool("estimate_uncertainty", LONG_CALL, progress_callback=seen)
    assert result.structured_content is not None
    return result.structured_content["value"], reported


@pytest.mark.parametrize("store", ["memory", "dynamodb"])
def test_the_official_client_finishes_a_long_call_on_either_store(store: str) -> None:
    with ExitStack() as stack:
        options = []
        environ = {}
        if store == "dynamodb":
            options, environ = ["--dynamodb"], stack.enter_context(running()).environment
        server = stack.enter_context(serving(ROOT, *options, environ=environ))

        value, reported = anyio.run(call_a_long_tool, server.url)

    assert value == 46.77
    assert reported == sorted(set(reported))
    assert ("2 processes" if store == "dynamodb" else "in memory") in server.banner


def test_polling_can_be_off() -> None:
    with serving(ROOT, environ={"MCP_POLLING": "off"}) as server:
        assert "run in place" in server.banner
        assert anyio.run(names_of_tools, server.url) == TOOLS


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--dynamodb"], 1, "AWS_ENDPOINT_URL_DYNAMODB is not set"),
        (["--dynamodb", "--reload"], 2, "use one of the two"),
        (["tests.project.sam:app", "--dynamodb"], 1, "A worker did not start with tests.project.sam:lambda_handler"),
    ],
)
def test_what_dynamodb_needs_is_said(
    arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
        if arguments[0] != "--dynamodb":
            for name, value in stack.enter_context(running()).environment.items():
                monkeypatch.setenv(name, value)
        finished = run("dev", *arguments, cwd=ROOT)

    assert finished.returncode == code
    assert said in finished.stderr


def test_a_port_in_use_is_named_before_anything_is_printed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        finished = run("dev", "--port", port, cwd=ROOT)

    assert finished.returncode == 1
    assert finished.stdout == ""
    assert f"port {port}" in finished.stderr
    assert "--port" in finished.stderr


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("handler.app", 2, "module:attribute"),
        ("nothing.here:app", 1, "There is no module 'nothing'"),
        ("handler.nothing:app", 1, "There is no module 'handler.nothing'"),
        ("handler.app:application", 1, "no attribute 'application'"),
    ],
)
def test_a_wrong_target_is_explained(target: str, code: int, said: str) -> None:
    finished = run("dev", target, cwd=ROOT)

    assert finished.returncode == code
    assert said in finished.stderr
    assert "Traceback" not in finished.stderr


def test_what_a_module_itself_lacks_keeps_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import a_package_that_is_not_there\n")

    finished = run("dev", "broken:app", cwd=tmp_path)

    assert finished.returncode == 1
    assert "broken.py" in finished.stderr
    assert "a_package_that_is_not_there" in finished.stderr


def test_a_server_that_cannot_be_configured_says_so_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "nameless.py").write_text("from mcp_stateless import MCPServer\nserver = MCPServer('')\n")

    finished = run("dev", "nameless:app", cwd=tmp_path)

    assert finished.returncode == 1
    assert finished.stderr.startswith("Error: ")
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("absent", "arguments"), [("click", ["--help"]), ("uvicorn", ["dev"]), ("cookiecutter", ["new", "a-project"])]
)
def test_a_missing_package_is_answered_with_the_command_that_installs_it(
    absent: str, arguments: list[str], tmp_path: Path
) -> None:
    program = f"import sys; sys.modules[{absent!r}] = None; from mcp_stateless.cli import main; main({arguments!r})"

    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert finished.returncode == 1
    assert "pip install 'mcp-stateless[cli]'" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert list(tmp_path.iterdir()) == []
