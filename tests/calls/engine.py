"""A DynamoDB-compatible engine for the tests, in memory, on a port of this machine.

`dynoxide` is the faster and stricter one, but needs npm and Linux on x86-64; everywhere else it is `ministack`, which
needs Python only. `DYNAMODB_ENGINE` names one of them to have that. Each is installed under `.cache` when first used.
"""

import fcntl
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[1] / ".cache"
CHOICE: Final = "DYNAMODB_ENGINE"
MARK: Final = ".installed"
"""The file that marks a finished set-up; it holds what was installed."""
START_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine."""

    name: str
    url: str

    @property
    def environment(self) -> dict[str, str]:
        """What sends boto3 here, and nothing of the developer's own account or profile with it."""
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_SESSION_TOKEN": "",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def chosen() -> str:
    """The engine that runs here."""
    name = os.environ.get(CHOICE)
    if name not in (None, "dynoxide", "ministack"):
        raise ValueError(f"{CHOICE}={name}: it is dynoxide or ministack")
    has_binary = sys.platform == "linux" and platform.machine() == "x86_64" and shutil.which("npm") is not None
    return name or ("dynoxide" if has_binary else "ministack")


@contextmanager
def running() -> Iterator[Engine]:
    """An empty engine, ended with the context."""
    name, port = chosen(), _free_port()
    command, environment = _dynoxide(port) if name == "dynoxide" else _ministack(port)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield Engine(name, f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _dynoxide(port: int) -> tuple[list[str], Mapping[str, str]]:
    folder, lock = CACHE / "dynoxide", HERE / "dynoxide" / "package-lock.json"
    with _installing(folder, lock) as missing:
        if missing:
            for file in ("package.json", lock.name):
                shutil.copy(lock.with_name(file), folder)
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)
    binary = folder / "node_modules" / "@dynoxide" / "linux-x64" / "dynoxide"
    return [str(binary), "--host", "127.0.0.1", "--port", str(port)], {}


def _ministack(port: int) -> tuple[list[str], Mapping[str, str]]:
    folder, requirements = CACHE / "ministack", HERE / "ministack.txt"
    python = folder / "bin" / "python"
    with _installing(folder, requirements) as missing:
        if missing:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "-r", str(requirements)], check=True)
    settings = {"SERVICES": "dynamodb", "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "HOME": str(folder)}
    return [str(python), "-m", "ministack.app"], settings | {"PATH": os.defpath, "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def _installing(folder: Path, pins: Path) -> Iterator[bool]:
    """Whether what `pins` names is yet to be installed in `folder`; one process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / MARK
    with (CACHE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = pins.read_text(encoding="utf-8")
        missing = not mark.exists() or mark.read_text(encoding="utf-8") != wanted
        yield missing
        if missing:
            mark.write_text(wanted, encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{process.args!r} did not listen within {START_SECONDS} seconds") from None
            time.sleep(0.01)
