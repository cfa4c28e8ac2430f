"""FastMCP's client with its tasks extension, in an environment of its own that is installed once."""

import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[1] / ".cache"
VENV: Final = CACHE / "tasks-venv"
REQUIREMENTS: Final = HERE / "requirements.txt"
INSTALL_SECONDS: Final = 600


def fastmcp_python() -> Path:
    """The interpreter of the environment in which `requirements.txt` is installed."""
    interpreter, mark = VENV / "bin" / "python", VENV / ".installed"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "tasks-venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            _run(sys.executable, "-m", "venv", "--clear", VENV)
            _run(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS)
            mark.write_text(wanted, encoding="utf-8")
    return interpreter


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, timeout=INSTALL_SECONDS, check=False, capture_output=True, text=True)
    if done.returncode:
        told = f"{done.stdout}{done.stderr}".strip()
        raise RuntimeError(f"FastMCP's client could not be installed: {' '.join(map(str, command))}\n{told}")
