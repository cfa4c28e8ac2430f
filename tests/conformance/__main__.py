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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_stateless.testing.environments import Fleet, Subprocess
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.http_server import HttpServer

HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = 4
TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True)
class Run:
    """One revision with one release of the suite, over one event source."""

    package: str
    revision: str
    source: Source = "http_api"

    def __str__(self) -> str:
        return f"{self.package} at {self.revision} over {self.source}"


RUNS: Final = (
    Run("conformance-stable", "2025-11-25"),
    Run("conformance-next", "2025-11-25"),
    Run("conformance-next", "2026-07-28"),
    Run("conformance-next", "2026-07-28", "rest_api"),
    Run("conformance-next", "2026-07-28", "function_url"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--revision", help="only this revision")
    parser.add_argument("--source", help="only this event source")
    parser.add_argument("--only", help="only this scenario; its whole report is shown")
    options = parser.parse_args()
    runs = [run for run in RUNS if options.revision in (None, run.revision) and options.source in (None, run.source)]
    return max([_run(run, options.only) for run in runs], default=0)


def _run(run: Run, scenario: str | None) -> int:
    print(f"== {run}", flush=True)
    environment = {"PYTHONPATH": str(HERE.parent.parent)}
    fleet = Fleet([Subprocess("tests.conformance.server:lambda_handler", env=environment) for _ in range(ENVIRONMENTS)])
    with fleet, tempfile.TemporaryDirectory() as reports:
        fleet.warm_up()
        with HttpServer(fleet, run.source) as server:
            command = [*_suite(run), "server", "--url", f"{server.url}/mcp", *_selection(run, scenario), "-o", reports]
            done = subprocess.run(command, timeout=TIMEOUT_S, check=False, capture_output=True, text=True)
    told = done.stdout if scenario is not None or done.returncode else done.stdout.partition("=== SUMMARY ===")[2]
    print(told.strip(), done.stderr.strip() if done.returncode else "", sep="\n", flush=True)
    return done.returncode


def _suite(run: Run) -> list[str]:
    return [_node(), str(HERE / "node_modules" / run.package / "dist" / "index.js")]


def _selection(run: Run, scenario: str | None) -> Iterator[str]:
    if scenario is not None:
        yield from ("--scenario", scenario)
    else:
        yield from ("--suite", "all" if run.package == "conformance-next" else "active")
        expected = HERE / "expected_failures" / f"{run.revision}.yml"
        if expected.exists():
            yield from ("--expected-failures", str(expected))
    if run.package == "conformance-next":
        yield from ("--spec-version", run.revision)


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
