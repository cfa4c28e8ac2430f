"""`mcp-stateless dev` in a process of its own, as a user starts it."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that listens, and what it printed before."""

    banner: str

    @property
    def url(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+/\S*", self.banner)
        assert found, self.banner
        return found[0]


@contextmanager
def serving(
    folder: Path, *arguments: str, python: str = sys.executable, environ: dict[str, str] | None = None
) -> Iterator[Serving]:
    """Serve the project in `folder` on a free port until the block ends."""
    process = subprocess.Popen(
        [python, "-m", "mcp_stateless.cli", "dev", *arguments, "--port", "0"],
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | (environ or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Serving(_banner(process))
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)
        if process.stdout:
            process.stdout.close()


def _banner(process: subprocess.Popen[str]) -> str:
    """What is printed up to the line that says how to stop it. A reader thread keeps the wait bounded."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        assert process.stdout
        for line in iter(process.stdout.readline, ""):
            lines.put(line)
            if line.startswith("Stop with"):
                return
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    printed = ""
    while "Stop with" not in printed:
        line = lines.get(timeout=START_SECONDS)
        assert line, f"The server ended before it listened:\n{printed}"
        printed += line
    return printed
