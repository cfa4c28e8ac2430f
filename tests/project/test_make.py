"""The Makefile as a user meets it on a new machine."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.project.sam import ENVIRONMENT

ROOT: Final = Path(__file__).parents[2]


def make(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHON"} | environ
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def fake_python(folder: Path, name: str, version: str) -> Path:
    """A program that calls itself an old Python: it fails the check of its version, and says which it is."""
    script = folder / name
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Python {version}" && exit 0\nexit 1\n')
    script.chmod(0o755)
    return script


def test_a_python_that_is_too_old_is_named_with_what_to_do(tmp_path: Path) -> None:
    old = fake_python(tmp_path, "python3.9", "3.9.18")

    finished = make("setup", f"PYTHON={old}")

    assert finished.returncode == 2
    assert "needs Python 3.11 or newer" in finished.stderr
    assert "is Python 3.9.18" in finished.stderr
    assert "PYTHON=python3.13" in finished.stderr
    assert not (ROOT / ".venv-3.9").exists()


def test_an_old_python3_is_passed_over_for_a_newer_one_beside_it(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3", "3.9.6")
    new = tmp_path / "python3.14"
    new.write_text("#!/bin/sh\nexit 0\n")
    new.chmod(0o755)

    finished = make("--dry-run", "--always-make", "setup", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert finished.returncode == 0
    assert "python3.14 -m venv --clear .venv " in finished.stdout


@pytest.mark.parametrize(
    ("python", "folder"), [("python3.12", ".venv-3.12"), ("/opt/bin/python3.13", ".venv-3.13"), ("python3", ".venv-3")]
)
def test_each_named_python_has_an_environment_of_its_own(python: str, folder: str) -> None:
    finished = make("--dry-run", "--always-make", "test", f"PYTHON={python}")

    assert f"{python} -m venv --clear {folder} " in finished.stdout
    assert f"{folder}/bin/python -m pytest tests" in finished.stdout


def test_the_official_suite_and_the_checks_are_one_word_each() -> None:
    printed = make("--dry-run", "check", "conformance", "run").stdout

    for command in ("ruff format --check .", "ruff check .", "mypy", "-m tests.conformance", "dev handler.app:app"):
        assert command in printed


def test_the_suites_bring_their_own_node_so_that_the_machine_needs_none() -> None:
    printed = make("--dry-run", "--always-make", "test", "conformance").stdout

    node = f'PATH="{ROOT}/.cache/clients-venv/bin:$PATH"'
    assert printed.count(f"{node} npm ci ") == 2
    assert f"{node} .venv/bin/python -m tests.conformance" in printed
    assert "-m pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt" in printed
    assert printed.index("npm ci") < printed.index("-m pytest tests")


def test_long_calls_are_one_word_each_too() -> None:
    printed = make("--dry-run", "run-dynamodb", "soak").stdout

    assert "-m tests.project.with_engine .venv/bin/mcp-stateless dev --dynamodb handler.app:app" in printed
    assert "-m tests.soak" in printed


def test_a_command_gets_an_engine_of_its_own_and_its_exit_code_is_kept() -> None:
    program = "import os, boto3, sys; print(boto3.client('dynamodb').list_tables()['TableNames']); sys.exit(3)"
    environment = os.environ | {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    command = [sys.executable, "-m", "tests.project.with_engine", sys.executable, "-c", program]

    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert (finished.stdout, finished.returncode) == ("[]\n", 3)


def test_ci_runs_every_check_and_stops_at_the_first_failure() -> None:
    script = (ROOT / ".ci" / "run").read_text()

    assert "set -euo pipefail" in script
    assert "export CI=true" in script
    for target in ("check", "test", "conformance"):
        assert f'step make {target} PYTHON="$python"' in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
