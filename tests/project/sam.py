"""The SAM CLI as the tests run it: from the environment that `make sam` sets up, offline, without credentials."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SAM_PYTHON: Final = ROOT / ".cache" / "sam-venv" / "bin" / "python"

HERE: Final = Path(sys.prefix).name

FOREIGN: Final = ("AWS_", "SAM_", "MAKE", "MFLAGS", "PYTHON", "VIRTUAL_ENV")
"""Variables that would let the machine, or the make that started the tests, have a say in what is built."""

ENVIRONMENT: Final = {
    **{name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)},
    "AWS_DEFAULT_REGION": "us-east-1",
    "SAM_CLI_TELEMETRY": "0",
    # `make build-Server` shall use the environment that the tests run in, and not set up another one.
    **({"PYTHON": f"python{HERE.removeprefix('.venv-')}"} if HERE.startswith(".venv-") else {}),
}


def sam(*arguments: str, cwd: Path, home: Path | None = None) -> str:
    """Run the SAM CLI; returns what it printed. A failure shows all of it."""
    return run_python("-m", "samcli", *arguments, cwd=cwd, home=home)


def run_python(*arguments: str, cwd: Path, given: str | None = None, home: Path | None = None) -> str:
    """Run the Python that has the SAM CLI and its translator."""
    assert SAM_PYTHON.exists(), "The SAM CLI is not set up here: run `make sam`"
    finished = subprocess.run(
        [str(SAM_PYTHON), *arguments],
        cwd=cwd,
        env=ENVIRONMENT | ({"HOME": str(home)} if home else {}),
        input=given,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
