"""The package under the real runtime client: warm calls, freezing, timeouts, crashes, several environments."""

import sysconfig
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mcp_stateless.testing import Client, Fleet, InvocationError, RequestError
from mcp_stateless.testing.events import http_api_event

from . import tools
from .runtime import RuntimeEmulator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not tools.SUPPORTED, reason="the runtime interface emulator is a Linux program"),
]

CODE = dedent(
    """
    import os
    import threading
    import time

    from mcp_stateless.server import MCPServer

    server = MCPServer("emulated", version="1")
    ticks = []


    def tick():
        while True:
            ticks.append(1)
            time.sleep(0.005)


    threading.Thread(target=tick, daemon=True).start()


    @server.tool()
    def pid() -> int:
        return os.getpid()


    @server.tool()
    def ticked() -> int:
        return len(ticks)


    @server.tool(in_thread=False)
    def hang() -> None:
        time.sleep(600)


    @server.tool()
    async def slow() -> None:
        import asyncio

        await asyncio.sleep(600)


    @server.tool(in_thread=False)
    def crash() -> None:
        os._exit(1)


    @server.tool()
    def text(length: int) -> str:
        return "日" * length


    handler = server.lambda_handler(server.app())


    def raises(event, context):
        raise ValueError("not today")
    """
)


@pytest.fixture(scope="module")
def code_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "function.py").write_text(CODE)
    return folder


def emulator(code_dir: Path, handler: str = "function.handler", **options: Any) -> RuntimeEmulator:
    """An environment that has this checkout and the libraries of the running tests as its layers."""
    layers = [str(code_dir), str(tools.ROOT), sysconfig.get_path("purelib")]
    return RuntimeEmulator(code_dir, handler, env={"PYTHONPATH": ":".join(layers)}, **options)


@pytest.fixture(scope="module")
def environment(code_dir: Path) -> Iterator[RuntimeEmulator]:
    with emulator(code_dir, timeout_s=3) as found:
        yield found


def test_warm_calls_are_answered_by_the_same_process(environment: RuntimeEmulator) -> None:
    client = Client(environment)
    client.initialize()
    pids = {client.call_tool("pid").structured_content["result"] for _ in range(5)}
    assert pids <= set(environment.runtime_pids())
    assert len(pids) == 1


def test_results_of_many_bytes_and_characters_arrive(environment: RuntimeEmulator) -> None:
    assert Client(environment).call_tool("text", {"length": 300_000}).text == "日" * 300_000


def test_nothing_runs_between_invocations(environment: RuntimeEmulator) -> None:
    client = Client(environment)
    before = client.call_tool("ticked").structured_content["result"]
    # Were it not frozen, this wait would be worth some forty ticks.
    threading.Event().wait(0.2)
    assert client.call_tool("ticked").structured_content["result"] - before < 20


def test_a_call_past_the_functions_timeout_is_answered_before_it(environment: RuntimeEmulator) -> None:
    client = Client(environment)
    pid = client.call_tool("pid").text
    assert client.call_tool("slow").is_error
    assert client.call_tool("pid").text == pid


@pytest.mark.parametrize("tool", ["hang", "crash"])
def test_an_environment_that_hangs_or_dies_is_replaced(environment: RuntimeEmulator, tool: str) -> None:
    client = Client(environment)
    pid = client.call_tool("pid").text
    with pytest.raises(RequestError) as caught:
        client.call_tool(tool)
    assert caught.value.status == 500
    assert client.call_tool("pid").text != pid


def test_an_environment_killed_while_idle_is_replaced(environment: RuntimeEmulator) -> None:
    client = Client(environment)
    pid = client.call_tool("pid").text
    environment.kill()
    for _ in range(2):
        try:
            again = client.call_tool("pid").text
            break
        except RequestError:
            continue  # Lambda, too, may lose the first event after such an end
    assert again != pid


def test_odd_events_are_answered(environment: RuntimeEmulator) -> None:
    assert environment.invoke({}) == {"ignored": "empty event"}
    assert environment.invoke([1]) == {"ignored": "unknown event"}
    refused = environment.invoke(http_api_event("POST", "/mcp") | {"headers": 5})
    assert refused["statusCode"] == 400


def test_a_handler_that_raises_is_an_invocation_error(code_dir: Path) -> None:
    with emulator(code_dir, "function.raises") as environment, pytest.raises(InvocationError, match="not today"):
        environment.invoke({})


def test_a_handler_that_cannot_be_imported_is_an_invocation_error(code_dir: Path) -> None:
    with (
        emulator(code_dir, "missing.handler") as environment,
        pytest.raises(InvocationError, match="ImportModuleError"),
    ):
        environment.invoke({})


def test_a_fleet_of_environments_serves_callers_at_once(code_dir: Path) -> None:
    with ExitStack() as stack:
        environments = [stack.enter_context(emulator(code_dir)) for _ in range(2)]
        client = Client(Fleet(environments))
        pids: list[str] = []
        threads = [threading.Thread(target=lambda: pids.append(client.call_tool("pid").text)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(pids) == 8
    assert len(set(pids)) == 2


def test_closing_leaves_no_process_behind(code_dir: Path) -> None:
    with emulator(code_dir) as environment:
        environment.invoke({})
        pids = environment.runtime_pids()
    assert pids
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
