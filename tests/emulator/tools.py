"""The tools that the emulator runs on, in virtual environments under `.cache`, made when they are missing.

`make test` makes the first one; a Python of another version than its own gets the runtime client in one more.
"""

import fcntl
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".cache"
REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
SAM_VENV: Final = CACHE / "sam-venv"
MARK: Final = ".installed"
"""The file that marks a finished set-up, as in the Makefile."""
RUNTIME: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
SUPPORTED: Final = sys.platform == "linux"
"""The emulator is a Linux program."""


def emulator() -> Path:
    """The runtime interface emulator, which comes with the SAM CLI."""
    with _locked():
        if not (SAM_VENV / MARK).exists():
            _install(SAM_VENV, ["-r", str(REQUIREMENTS)])
    name = "aws-lambda-rie-arm64" if platform.machine() in ("arm64", "aarch64") else "aws-lambda-rie-x86_64"
    (found,) = SAM_VENV.glob(f"lib/python*/site-packages/samcli/local/rapid/{name}")
    found.chmod(found.stat().st_mode | 0o111)
    return found


def runtime_python() -> Path:
    """An interpreter of the running version that has what Lambda's has: the runtime client and boto3."""
    emulator()
    if (SAM_VENV / "lib" / RUNTIME).exists():
        return SAM_VENV / "bin" / "python"
    venv = CACHE / f"lambda-{RUNTIME}"
    with _locked():
        if not (venv / MARK).exists():
            pins = REQUIREMENTS.read_text().splitlines()
            _install(venv, [pin for pin in pins if pin.startswith(("awslambdaric==", "boto3==", "botocore=="))])
    return venv / "bin" / "python"


def _install(venv: Path, requirements: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True)
    (venv / MARK).touch()


@contextmanager
def _locked() -> Iterator[None]:
    """One at a time, when several test runs start together."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "tools.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
