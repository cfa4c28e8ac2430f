"""Calls do not meet: not by their ids, not in threads, not by what another caller posts, not after a crash."""

import asyncio
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from mcp_stateless import Context, MCPServer
from tests.http.door import Answer, Door, Weight, asgi, request

APPLICATIONS: dict[str, Callable[[MCPServer], Any]] = {
    "endpoint alone": lambda server: server.endpoint(),
    "FastAPI app": lambda server: server.app(),
}


@pytest.fixture(params=APPLICATIONS)
def application(request: pytest.FixtureRequest) -> Callable[[MCPServer], Any]:
    return APPLICATIONS[request.param]


def together(app: Any, *posts: tuple[dict[str, Any], dict[str, str]]) -> list[Answer]:
    async def main() -> list[Answer]:
        return await asyncio.gather(*(asgi(app, message, headers) for message, headers in posts))

    with asyncio.Runner() as runner:
        return runner.run(main())


def call(name: str) -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": {}})


# B04
@pytest.mark.parametrize("tool", ["whoami", "whoami_in_thread"])
def test_two_callers_with_the_same_id_get_their_own_answers(application: Callable[[MCPServer], Any], tool: str) -> None:
    server = MCPServer("sample")
    arrived: list[str] = []
    both = asyncio.Event()
    barrier = threading.Barrier(2, timeout=5)

    @server.tool()
    async def whoami(ctx: Context[None]) -> str:
        """Tell the caller."""
        arrived.append(ctx.headers["Authorization"])
        if len(arrived) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return ctx.headers["authorization"]

    @server.tool()
    def whoami_in_thread(ctx: Context[None]) -> str:
        """Tell the caller."""
        barrier.wait()
        return ctx.headers["AUTHORIZATION"]

    names = ["Bearer alice", "Bearer bob"]
    answers = together(application(server), *((call(tool), {"authorization": name}) for name in names))
    assert [answer.text for answer in answers] == names


# B03
def test_the_first_requests_may_come_all_at_once(application: Callable[[MCPServer], Any]) -> None:
    server = MCPServer("sample")
    starts = []

    @server.on_start
    async def start() -> None:
        starts.append(1)
        await asyncio.sleep(0)

    @server.tool()
    def started() -> int:
        """Count the starts."""
        return len(starts)

    answers = together(application(server), *[(call("started"), {})] * 20)
    assert {answer.text for answer in answers} == {"1"}


# B08
def test_threaded_tools_run_side_by_side_and_keep_context_variables(
    application: Callable[[MCPServer], Any],
) -> None:
    server = MCPServer("sample")
    barrier = threading.Barrier(2, timeout=5)
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    threads = set()

    @server.on_start
    def start() -> None:
        variable.set("not seen by calls")

    @server.tool()
    def slow(ctx: Context[None]) -> str:
        """Wait for the other one."""
        barrier.wait()
        threads.add(threading.get_ident())
        return f"{ctx.request_id} {variable.get()}"

    async def main() -> list[Answer]:
        app = application(server)
        variable.set("mine")
        return list(await asyncio.gather(asgi(app, call("slow")), asgi(app, call("slow"))))

    with asyncio.Runner() as runner:
        answers = runner.run(main())
    assert [answer.text for answer in answers] == ["1 mine", "1 mine"]
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_a_tool_bound_to_a_thread_runs_on_the_loops_own(weight: Weight) -> None:
    server = MCPServer("sample")
    seen = []

    @server.tool(in_thread=False)
    def here() -> None:
        """Note the thread."""
        seen.append(threading.get_ident())

    @server.tool()
    async def loop() -> None:
        """Note the thread."""
        seen.append(threading.get_ident())

    @server.tool()
    def elsewhere() -> None:
        """Note the thread."""
        seen.append(threading.get_ident())

    door = Door(weight(server))
    for name in ("here", "loop", "elsewhere"):
        door.call(name)
    assert seen[0] == seen[1]
    assert seen[2] != seen[0]


# B56
def test_a_posted_cancellation_stops_nobody(application: Callable[[MCPServer], Any]) -> None:
    server = MCPServer("sample")
    app = application(server)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "mine"}}

    @server.tool()
    async def work() -> str:
        """Be cancelled by somebody else, in vain."""
        answer = await asgi(app, cancel, {"authorization": "Bearer mallory"})
        await asyncio.sleep(0)
        return f"done after {answer.status}"

    (answer,) = together(app, (call("work"), {"authorization": "Bearer alice"}))
    assert answer.text == "done after 202"


# B106
@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_no_exception_of_a_tool_ends_the_environment(weight: Weight, error: BaseException, threaded: bool) -> None:
    server = MCPServer("sample")

    @server.tool()
    async def fail() -> str:
        """Fail."""
        raise error

    @server.tool()
    def fail_in_thread() -> str:
        """Fail."""
        raise error

    @server.tool()
    def work() -> str:
        """Work."""
        return "fine"

    door = Door(weight(server))
    answer = door.call("fail_in_thread" if threaded else "fail")
    assert (answer.status, answer.result["isError"]) == (200, True)
    assert door.call("work").text == "fine"


def test_endless_recursion_is_a_failure_like_any_other(weight: Weight) -> None:
    server = MCPServer("sample")

    @server.tool()
    def deep(n: int = 0) -> int:
        """Go down."""
        return deep(n + 1)

    @server.tool()
    async def deep_async(n: int = 0) -> int:
        """Go down."""
        return await deep_async(n + 1)

    door = Door(weight(server))
    for name in ("deep", "deep_async"):
        answer = door.call(name)
        assert (answer.status, answer.result["isError"]) == (200, True)
        assert "Recursion" not in answer.text
    assert sys.getrecursionlimit() > 100
