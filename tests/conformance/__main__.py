"""Run the official conformance suite against the conformance server, over Lambda events and several environments.

    python -m tests.conformance [--source http_api] [--only SCENARIO]

The suite talks HTTP to a local port; behind it each request becomes an event for one of four processes in turn, so that
nothing can be remembered in one. What is expected to fail is in `expected_failures/`, one file a revision; a scenario
in it that passes is an error.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import boto3

from mcp_stateless.calls.dynamodb import create_table
from mcp_stateless.testing import Fleet, InvokeApi, Subprocess
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.http_server import HttpServer
from tests.calls.engine import running

HERE: Final = Path(__file__).parent
HANDLER: Final = "tests.conformance.server:lambda_handler"
ENVIRONMENTS: Final = 4
WORKERS: Final = 6
"""More than calls at once: some scenarios cancel a call of a minute, and its worker sees that some seconds later."""
TABLE: Final = "conformance-calls"
TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True)
class Run:
    """One revision with one release of the suite, over one event source."""

    package: str
    revision: str
    source: Source = "http_api"
    scenarios: tuple[str, ...] = ()
    """These scenarios and no others: those of extensions belong to no revision's set."""

    def __str__(self) -> str:
        return f"{self.package} at {self.revision} over {self.source}"


TASKS: Final = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
)

RUNS: Final = (
    Run("conformance-stable", "2025-11-25"),
    Run("conformance-next", "2025-11-25"),
    Run("conformance-next", "2026-07-28"),
    Run("conformance-next", "2026-07-28", "rest_api"),
    Run("conformance-next", "2026-07-28", "function_url"),
    Run("conformance-next", "2026-07-28", scenarios=TASKS),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--revision", help="only this revision")
    parser.add_argument("--source", help="only this event source")
    parser.add_argument("--only", help="only this scenario; its whole report is shown")
    options = parser.parse_args()
    runs = [run for run in RUNS if options.revision in (None, run.revision) and options.source in (None, run.source)]
    if options.only is not None:
        runs = [replace(runs[-1], scenarios=(options.only,))]
    return max([_run(run, show=options.only is not None) for run in runs], default=0)


def _run(run: Run, *, show: bool) -> int:
    print(f"== {run}", flush=True)
    with ExitStack() as stack:
        fleet = _deployed(stack)
        reports = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(HttpServer(fleet, run.source))
        command = [*_suite(run), "server", "--url", f"{server.url}/mcp", "-o", reports]
        done = [
            subprocess.run([*command, *selection], timeout=TIMEOUT_S, check=False, capture_output=True, text=True)
            for selection in _selections(run)
        ]
    for each in done:
        is_short = not show and each.returncode == 0
        told = each.stdout.partition("=== SUMMARY ===")[2] if is_short and not run.scenarios else each.stdout
        print(told.strip(), each.stderr.strip() if each.returncode else "", sep="\n", flush=True)
    return max(each.returncode for each in done)


def _deployed(stack: ExitStack) -> Fleet:
    """What a deployment has: environments for HTTP, environments for work, the queue between them, and the table."""
    engine = stack.enter_context(running())
    client = boto3.client(
        "dynamodb",
        endpoint_url=engine.url,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )
    create_table(client, TABLE)
    settings = {"MCP_POLLING": "dynamodb", "MCP_CALL_TABLE": TABLE, "MCP_WORKER_FUNCTION": "worker"}
    environment = {"PYTHONPATH": str(HERE.parent.parent)} | engine.environment | settings
    workers = stack.enter_context(Fleet([Subprocess(HANDLER, env=environment) for _ in range(WORKERS)], "first_free"))
    api = stack.enter_context(InvokeApi(workers, concurrency=WORKERS))
    fleet = Fleet([Subprocess(HANDLER, env=environment | api.environment) for _ in range(ENVIRONMENTS)])
    stack.enter_context(fleet)
    workers.warm_up()
    fleet.warm_up()
    return fleet


def _suite(run: Run) -> list[str]:
    return [_node(), str(HERE / "node_modules" / run.package / "dist" / "index.js")]


def _selections(run: Run) -> list[list[str]]:
    """The arguments of each run of the suite: one for a revision's whole set, one for each scenario by name."""
    if run.scenarios:
        return [["--scenario", scenario] for scenario in run.scenarios]
    selection = ["--suite", "all" if run.package == "conformance-next" else "active"]
    expected = HERE / "expected_failures" / f"{run.revision}.yml"
    if expected.exists():
        selection += ["--expected-failures", str(expected)]
    return [selection + (["--spec-version", run.revision] if run.package == "conformance-next" else [])]


def _node() -> str:
    """The machine's Node.js if it is new enough, else the one that the lock file installs."""
    found = shutil.which("node")
    if found is not None:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.lstrip("v").split(".")[0]) >= 22:
            return found
    return str(HERE / "node_modules" / ".bin" / "node")


if __name__ == "__main__":
    os.chdir(HERE.parent.parent)
    sys.exit(main())
