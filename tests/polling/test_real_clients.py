"""Official clients finish long calls with progress: four environments for requests, workers, a queue and DynamoDB.

Every work event is delivered twice, as Lambda may.
"""

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from mcp_stateless.testing import Fleet, InvokeApi, Subprocess
from mcp_stateless.testing.http_server import HttpServer
from tests.clients import installations
from tests.clients.environments import ENVIRONMENTS, ROOT, Log, Recorded, Request
from tests.polling.deployed import AWKWARD, STEPS
from tests.polling.world import KEY

# The first test of a client may have to install it; that time is bounded where it is spent.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(60, func_only=True)]

HANDLER: Final = "tests.polling.deployed:lambda_handler"
DRIVERS: Final = Path(__file__).parent / "clients"
WORKERS: Final = 4
SECONDS: Final = 30
INSTALL_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Deployment:
    url: str
    log: Log


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a client found, and what the environments saw of it."""

    report: Mapping[str, Any]
    requests: Sequence[Request]

    @property
    def polls(self) -> list[Request]:
        return [request for request in self.requests if "last-event-id" in request.headers]


@pytest.fixture(scope="module")
def deployment(table: str) -> Iterator[Deployment]:
    variables = {
        "MCP_SIGNING_KEYS": KEY,
        "MCP_POLLING": "dynamodb",
        "MCP_CALL_TABLE": table,
        "MCP_WORKER_FUNCTION": "worker",
        "MCP_MIN_RETRY_MS": "50",
        "MCP_MAX_RETRY_MS": "150",
        "MCP_FLUSH_INTERVAL_MS": "50",
    }
    log = Log()
    workers = Fleet([Subprocess(HANDLER, env=variables, cwd=ROOT) for _ in range(WORKERS)], "first_free")
    with workers, InvokeApi(workers, concurrency=WORKERS, duplicate=lambda: True) as api:
        settings = variables | api.environment
        fronts = [Recorded(Subprocess(HANDLER, env=settings, cwd=ROOT), index, log) for index in range(ENVIRONMENTS)]
        with Fleet(fronts) as fleet:
            workers.warm_up()
            fleet.warm_up()
            with HttpServer(fleet) as server:
                yield Deployment(f"{server.url}/mcp", log)


def _program(*command: str | Path) -> Callable[[str], Mapping[str, Any]]:
    def run(url: str) -> Mapping[str, Any]:
        done = subprocess.run(
            [*command, url],
            timeout=SECONDS,
            check=False,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONUTF8": "1"},
        )
        assert done.returncode == 0, done.stderr
        report: Mapping[str, Any] = json.loads(done.stdout)
        return report

    return run


def _python_1_23() -> Path:
    """The interpreter of an environment with the client of `clients/python_1_23.txt`."""
    folder, pins = installations.CACHE / "client-1.23-venv", DRIVERS / "python_1_23.txt"
    interpreter, mark = folder / "bin" / "python", folder / ".installed"
    installations.CACHE.mkdir(exist_ok=True)
    with (installations.CACHE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = pins.read_text(encoding="utf-8")
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)]
            for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], [str(interpreter), *pip]):
                subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)
            mark.write_text(wanted, encoding="utf-8")
    return interpreter


def _python_2(url: str) -> Mapping[str, Any]:
    async def call(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        seen: list[list[object]] = []

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            seen.append([progress, total, message])

        result = await client.call_tool(name, arguments, progress_callback=progressed)
        [block] = result.content
        assert isinstance(block, types.TextContent)
        return {"text": block.text, "isError": result.is_error, "seen": seen}

    async def main() -> Mapping[str, Any]:
        async with Client(streamable_http_client(url), mode="legacy", read_timeout_seconds=SECONDS) as client:
            alone = await call(client, "long", {"n": 1})
            together = await asyncio.gather(*(call(client, "long", {"n": n}) for n in (2, 3, 4)))
            others = {name: await call(client, name, {}) for name in ("awkward", "failing")}
            return {"alone": alone, "together": together, **others}

    return asyncio.run(asyncio.wait_for(main(), SECONDS))


CLIENTS: Final[Mapping[str, Callable[[], Callable[[str], Mapping[str, Any]]]]] = {
    "Python 1.23": lambda: _program(_python_1_23(), DRIVERS / "python_1.py"),
    "Python 1.29": lambda: _program(installations.python(), DRIVERS / "python_1.py"),
    "Python 2": lambda: _python_2,
    "TypeScript 1": lambda: _program(installations.node(), DRIVERS / "typescript.cjs", "v1", installations.NODE_FOLDER),
    "TypeScript 2": lambda: _program(installations.node(), DRIVERS / "typescript.cjs", "v2", installations.NODE_FOLDER),
}


@pytest.fixture(scope="module", params=CLIENTS)
def conversation(request: pytest.FixtureRequest, deployment: Deployment) -> Conversation:
    run = CLIENTS[request.param]()
    deployment.log.clear()
    requests = deployment.log.requests
    return Conversation(run(deployment.url), requests)


def test_a_long_call_ends_in_its_result_with_progress_on_the_way(conversation: Conversation) -> None:
    alone = conversation.report["alone"]
    assert (alone["text"], alone["isError"]) == ("done 1", False)
    values = [progress for progress, _, _ in alone["seen"]]
    assert values == sorted(set(values))
    assert 0 < round(values[-1], 6) <= STEPS
    assert {message for _, _, message in alone["seen"]} <= {None, *(f"1 at {step}" for step in range(1, STEPS + 1))}
    assert len(values) >= 2


def test_calls_at_the_same_time_end_in_their_own_results(conversation: Conversation) -> None:
    together = conversation.report["together"]
    assert [each["text"] for each in together] == ["done 2", "done 3", "done 4"]
    for n, each in zip((2, 3, 4), together, strict=True):
        assert all(message is None or message.startswith(f"{n} at ") for _, _, message in each["seen"])


def test_text_comes_through_every_parser_of_lines(conversation: Conversation) -> None:
    assert conversation.report["awkward"]["text"] == AWKWARD


def test_a_tool_error_is_a_result_for_the_model(conversation: Conversation) -> None:
    failing = conversation.report["failing"]
    assert (failing["text"], failing["isError"]) == ("There is nothing to be had", True)


def test_no_poll_fails_and_each_has_an_id_of_its_own(conversation: Conversation) -> None:
    polls = conversation.polls
    assert {poll.status for poll in polls} == {200}
    ids = [poll.headers["last-event-id"] for poll in polls]
    assert len(set(ids)) == len(ids)
    # About 0.6 s a call, polled every 50 to 150 ms: six calls.
    assert 6 <= len(polls) <= 60


def test_the_polls_of_a_call_reach_environments_that_know_nothing_of_each_other(conversation: Conversation) -> None:
    assert {poll.environment for poll in conversation.polls} == set(range(ENVIRONMENTS))
    assert any(first.environment != second.environment for first, second in pairwise(conversation.polls))


def test_nobody_was_given_a_session(conversation: Conversation) -> None:
    assert not [request for request in conversation.requests if "mcp-session-id" in request.headers]
    assert {request.status for request in conversation.requests if request.verb == "DELETE"} <= {405}
