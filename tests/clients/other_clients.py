"""The official clients that run in a process of their own, over HTTP: Python 1.x and TypeScript 1.x and 2.x."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_stateless.testing import Fleet
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.http_server import HttpServer
from tests.clients import installations
from tests.clients.environments import Log, Request

HERE: Final = Path(__file__).parent
SECONDS: Final = 90
"""How long a client may take for all its scenarios; each is bounded in the program itself."""

PLAIN: Final = (
    "connect",
    "list",
    "structured",
    "text",
    "failure",
    "missing",
    "header",
    "read",
    "prompt",
    "complete",
    "progress",
    "often",
    "accept",
)
"""Scenarios for every client; where nobody can be asked, `accept` ends in a tool error."""

QUESTIONS: Final = (
    "decline",
    "cancel",
    "page",
    "twice",
    "gathered",
    "grouped",
    "many",
    "step",
    "sample",
    "roots",
    "prompt_that_asks",
    "template_that_asks",
)
"""Scenarios for clients that speak 2026-07-28."""


@dataclass(frozen=True, slots=True)
class OtherClient:
    """How a client is started; the URL and the scenarios come after `command`."""

    command: Callable[[], Sequence[str | Path]]
    revision: str
    connecting: Sequence[str]
    """What it sends before anything else."""
    missing_resource: int = -32602
    """The code that its user gets for a resource that is not there; TypeScript 2 makes the newest one of any."""

    @property
    def modern(self) -> bool:
        return self.revision == "2026-07-28"


LEGACY_CONNECTING: Final = ("initialize", "notifications/initialized")

CLIENTS: Final[Mapping[str, OtherClient]] = {
    "Python 1.29": OtherClient(lambda: _python_1(), "2025-11-25", LEGACY_CONNECTING, missing_resource=-32002),
    "TypeScript 1": OtherClient(lambda: _typescript("v1"), "2025-11-25", LEGACY_CONNECTING, missing_resource=-32002),
    "TypeScript 2": OtherClient(lambda: _typescript("v2-legacy"), "2025-11-25", LEGACY_CONNECTING),
    "TypeScript 2 auto": OtherClient(lambda: _typescript("v2-auto"), "2026-07-28", ("server/discover",)),
}


@dataclass(frozen=True, slots=True)
class Conversations:
    """What one client found in its scenarios, and what the environments saw of it."""

    client: OtherClient
    report: Mapping[str, Mapping[str, Any]]
    log: Sequence[Request]

    def value(self, scenario: str) -> Any:
        found = self.report[scenario]
        assert "error" not in found, found["error"]
        return found["value"]

    def requests(self, scenario: str) -> list[Request]:
        return [request for request in self.log if request.scenario == scenario]


def converse(
    client: OtherClient, scenarios: Sequence[str], fleet: Fleet, log: Log, source: Source = "http_api"
) -> Conversations:
    """Run scenarios of a client, which takes a port for the function's own address."""
    log.clear()
    command = client.command()
    with HttpServer(fleet, source, stage="prod" if source == "rest_api" else "$default") as server:
        done = subprocess.run(
            [*command, f"{server.url}/mcp", *scenarios],
            timeout=SECONDS,
            check=False,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONUTF8": "1"},
        )
    assert done.returncode == 0, done.stderr
    return Conversations(client, json.loads(done.stdout), log.requests)


def _python_1() -> Sequence[str | Path]:
    return installations.python(), HERE / "python_client_1.py"


def _typescript(kind: str) -> Sequence[str | Path]:
    return installations.node(), HERE / "node" / "driver.mjs", kind
