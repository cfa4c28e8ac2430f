"""`sam build` of this checkout: what Lambda would get, for more targets than this machine."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.project.sam import ROOT, sam

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ELF_MACHINES: Final = {"x86_64": 0x3E, "arm64": 0xB7}
MOST_BYTES: Final = 20_000_000
"""Unzipped; Lambda's own quota is 250 MB, and every megabyte is read at a cold start."""

HERE: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"

ANSWER: Final = """
import json, sys
sys.path.insert(0, sys.argv[1])
from handler.app import lambda_handler
print(json.dumps(lambda_handler(json.load(sys.stdin), None)))
"""


def build(folder: Path, runtime: str, architecture: str, *function: str) -> Path:
    """Build one function, or all of the template; returns the folder of the server."""
    overrides = ("--parameter-overrides", f"Runtime={runtime}", f"Architecture={architecture}")
    sam("build", *function, *overrides, "--build-dir", str(folder), cwd=ROOT)
    return folder / "Server"


@pytest.mark.parametrize(
    ("runtime", "architecture"), [("python3.13", "arm64"), ("python3.11", "x86_64"), ("python3.14", "arm64")]
)
def test_compiled_code_is_for_the_runtime_and_processor_of_the_template(
    runtime: str, architecture: str, tmp_path: Path
) -> None:
    built = build(tmp_path, runtime, architecture, "Server")

    libraries = list(built.rglob("*.so"))
    assert libraries
    for library in libraries:
        assert f".cpython-{runtime.removeprefix('python').replace('.', '')}-" in library.name
        assert int.from_bytes(library.read_bytes()[18:20], "little") == ELF_MACHINES[architecture]


@pytest.mark.skipif(sys.platform != "linux", reason="what is built for Lambda runs on Linux only")
def test_the_build_answers_an_event_with_nothing_else_installed(tmp_path: Path) -> None:
    architecture = "arm64" if platform.machine() == "aarch64" else "x86_64"
    built = build(tmp_path, HERE, architecture)
    event = (ROOT / "events" / "tools-list.json").read_text()

    finished = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ANSWER, str(built)],
        input=event,
        env={"AWS_LAMBDA_FUNCTION_NAME": "csv-toolbox", "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["statusCode"] == 200
    names = {path.name for path in built.iterdir()}
    assert {"boto3", "botocore", "uvicorn", "click", "httpx", "tests", "bin"} & names == set()
    assert {"handler", "mcp_stateless"} <= names
    assert (built / "handler" / "documents" / "csv-pitfalls.md").is_file()
    assert sum(path.stat().st_size for path in built.rglob("*") if path.is_file()) < MOST_BYTES
    assert contents(tmp_path / "Worker") == contents(built), "the worker is the same code"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file with its digest, but for what Python itself has written there."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest() for path in files}
