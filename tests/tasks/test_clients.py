"""Real clients over HTTP, against processes that share a table: tasks, rounds, and questions to who polls."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import pytest
from mcp import Client, MCPError

from mcp_stateless.testing import Environment
from mcp_stateless.testing.http_server import HttpServer
from tests.clients import installations as official
from tests.tasks.installations import fastmcp_python
from tests.tasks.processes import Processes, deployed
from tests.tasks.python_client import Created, Tasks, User, get, send, talk

# The first test of a client may have to install it; that time is bounded where it is spent.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(60, func_only=True)]

HERE: Final = Path(__file__).parent
SECONDS: Final = 60
IDLE_S: Final = 5
HELLO: Final = "Hello, Ada!"


@dataclass(slots=True)
class Counted:
    """An environment that counts what comes: JSON-RPC methods, and verbs where there is none."""

    environment: Environment
    seen: list[str] = field(default_factory=list)

    def invoke(self, event: Any, context_ms: int = 30_000) -> Any:
        message = json.loads(event.get("body") or "{}")
        verb: str = event["requestContext"]["http"]["method"]
        self.seen.append(message.get("method", "answer" if "result" in message else verb))
        return self.environment.invoke(event, context_ms)


@dataclass(slots=True)
class Place:
    """Where the clients go, and what is seen of them there."""

    url: str
    processes: Processes
    counted: Counted

    @property
    def seen(self) -> list[str]:
        return self.counted.seen

    @property
    def work(self) -> int:
        """How many pieces of work there were in all."""
        return self.processes.api.invocations

    def is_idle(self) -> None:
        """Nobody works, or does not any more in a moment: not for a call that waits for its user."""
        self.processes.api.wait_until_idle(IDLE_S)


@pytest.fixture(scope="module")
def processes(table: str) -> Iterator[Processes]:
    with deployed(table) as running:
        yield running


@pytest.fixture
def place(processes: Processes) -> Iterator[Place]:
    counted = Counted(processes.fleet)
    with HttpServer(counted) as server:
        yield Place(server.url, processes, counted)


def text_of(result: types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def run(*command: str | Path) -> Any:
    """What a client in a process of its own found."""
    environment = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(command, timeout=SECONDS, check=False, capture_output=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Tasks: the official Python client 2.x with an extension


def test_an_extension_of_the_python_client_sees_a_task_through(place: Place) -> None:
    extension = Tasks()
    result = talk(
        place.url,
        "auto",
        lambda client: client.call_tool("takes_a_while", {"seconds": 0.5}),
        extensions=[extension],
    )
    assert text_of(result) == "took 0.5 s"
    assert [task.status for task in extension.seen][-1] == "completed"
    assert place.seen.count("tools/call") == 1
    assert place.seen.count("tasks/get") >= 2


def test_the_python_client_answers_two_questions_of_a_task_one_by_one(place: Place) -> None:
    extension, before = Tasks(), place.work
    result = talk(place.url, "auto", lambda client: client.call_tool("asks_two"), user=User(), extensions=[extension])
    assert text_of(result) == "Ada is 36"
    open_questions = [sorted(task.input_requests) for task in extension.seen if task.input_requests]
    assert open_questions[0] == ["age", "name"]
    assert [len(keys) for keys in open_questions] == [2, 1]
    assert place.work - before == 2


def test_the_python_client_cancels_a_task(place: Place) -> None:
    async def conversation(client: Client) -> list[str]:
        created = await client.session.call_tool("takes_a_while", {"seconds": 60}, allow_claimed=True)
        assert isinstance(created, Created)
        for _ in range(2):
            await send(client.session, "tasks/cancel", created.task_id)
        with pytest.raises(MCPError, match="Unknown task"):
            await get(client.session, f"{created.task_id}x")
        return [(await get(client.session, created.task_id)).status]

    assert talk(place.url, "auto", conversation, extensions=[Tasks()]) == ["cancelled"]


def test_a_tool_that_fails_is_told_to_the_python_client_as_without_a_task(place: Place) -> None:
    result = talk(place.url, "auto", lambda client: client.call_tool("refuses"), extensions=[Tasks()])
    assert (result.is_error, text_of(result)) == (True, "There is nothing to be had")


# Tasks: FastMCP


@pytest.fixture(scope="module")
def fastmcp(processes: Processes) -> Any:
    scenarios = ["completes", "transparent", "refused", "cancels", "asked"]
    with HttpServer(processes.fleet) as server:
        return run(fastmcp_python(), HERE / "fastmcp_client.py", f"{server.url}/mcp", *scenarios)


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("completes", ["working", "took 0.3 s", "completed"]),
        ("transparent", "took 0.1 s"),
        ("refused", [True, "There is nothing to be had"]),
        ("cancels", "cancelled"),
        ("asked", [["age", "name"], "Ada is 36"]),
    ],
)
def test_fastmcp_drives_tasks(fastmcp: Any, scenario: str, expected: object) -> None:
    assert fastmcp[scenario] == {"value": expected}


# Rounds


def test_the_python_client_repeats_a_long_call_until_it_has_its_result(place: Place) -> None:
    before = place.work
    result = talk(place.url, "auto", lambda client: client.call_tool("takes_a_while", {"seconds": 2.5}))
    assert text_of(result) == "took 2.5 s"
    assert 3 <= place.seen.count("tools/call") <= 10
    assert place.work - before == 1


def test_the_typescript_client_repeats_a_long_call_until_it_has_its_result(place: Place) -> None:
    before = place.work
    found = typescript("v2-auto", place, "takes_a_while", seconds=2.5)
    assert found["text"] == "took 2.5 s"
    assert 3 <= place.seen.count("tools/call") <= 10
    assert place.work - before == 1


def test_the_python_client_answers_a_question_between_two_rounds(place: Place) -> None:
    before, user = place.work, User(place.is_idle)
    assert text_of(talk(place.url, "auto", lambda client: client.call_tool("asks"), user=user)) == HELLO
    assert (user.seen, place.work - before) == (["Name?"], 2)


def test_the_typescript_client_answers_a_question_between_two_rounds(place: Place) -> None:
    before = place.work
    assert typescript("v2-auto", place, "asks") == {"text": HELLO, "seen": ["Name?"]}
    assert place.work - before == 2


# Questions at 2025-11-25


@pytest.mark.parametrize(("tool", "work"), [("asks", 2), ("asks_shortly", 1)])
def test_the_python_client_is_asked_on_the_stream_it_polls_and_nobody_works_meanwhile(
    place: Place, tool: str, work: int
) -> None:
    before, user = place.work, User(place.is_idle)
    assert text_of(talk(place.url, "legacy", lambda client: client.call_tool(tool), user=user)) == HELLO
    assert (user.seen, place.work - before) == (["Name?"], work)
    assert place.seen.count("tools/call") == 1
    assert place.seen.count("answer") == 1
    assert place.seen.count("GET") >= 3


@pytest.mark.parametrize(("tool", "work"), [("asks", 2), ("asks_shortly", 1)])
def test_the_python_client_1_is_asked_on_the_stream_it_polls(place: Place, tool: str, work: int) -> None:
    before = place.work
    found = run(official.python(), HERE / "python_client_1.py", f"{place.url}/mcp", tool, "{}")
    assert found == {"text": HELLO, "seen": ["Name?"]}
    assert (place.work - before, place.seen.count("answer")) == (work, 1)


@pytest.mark.parametrize("kind", ["v1", "v2-legacy"])
@pytest.mark.parametrize(("tool", "work"), [("asks", 2), ("asks_shortly", 1)])
def test_the_typescript_clients_are_asked_on_the_stream_they_poll(
    place: Place, kind: str, tool: str, work: int
) -> None:
    before = place.work
    assert typescript(kind, place, tool) == {"text": HELLO, "seen": ["Name?"]}
    assert (place.work - before, place.seen.count("answer")) == (work, 1)


def typescript(kind: str, place: Place, tool: str, **arguments: object) -> Any:
    command: Sequence[str | Path] = (official.node(), HERE / "driver.mjs", official.NODE_FOLDER, kind)
    return run(*command, f"{place.url}/mcp", tool, json.dumps(arguments))
