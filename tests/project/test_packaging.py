"""What an installation brings, and what it must not."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = [path for path in (ROOT / "mcp_stateless").rglob("*.py") if "templates" not in path.parts]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def closure(distribution: str, extra: str = "") -> set[str]:
    """The names of everything that installing `distribution` brings, by the metadata of what is installed here."""
    found: set[tuple[str, str]] = set()
    waiting = [(distribution, extra)]
    while waiting:
        name, chosen = waiting.pop()
        for line in requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": chosen}):
                for wanted in {"", *requirement.extras}:
                    entry = (re.sub(r"[-_.]+", "-", requirement.name).lower(), wanted)
                    if entry not in found:
                        found.add(entry)
                        waiting.append(entry)
    return {name for name, _ in found}


def test_a_plain_installation_brings_what_serves_json_and_nothing_else() -> None:
    brought = closure("mcp-stateless")

    assert brought == {
        "annotated-doc",
        "annotated-types",
        "anyio",
        "fastapi",
        "idna",
        "mangum",
        "opentelemetry-api",
        "pydantic",
        "pydantic-core",
        "starlette",
        "typing-extensions",
        "typing-inspection",
    }


@pytest.mark.parametrize(
    ("extra", "named"),
    [("aws", {"boto3"}), ("local", {"uvicorn"}), ("cli", {"click", "cookiecutter", "uvicorn"}), ("testing", {"httpx"})],
)
def test_each_extra_brings_what_it_is_named_for(extra: str, named: set[str]) -> None:
    assert named <= closure("mcp-stateless", extra)
    assert not named & closure("mcp-stateless")


def test_no_module_reaches_into_private_parts_of_pydantic() -> None:
    private = re.compile(r"pydantic\._|pydantic_core\._|from pydantic import _")

    assert [path.name for path in SOURCES if private.search(path.read_text())] == []


def test_the_version_is_written_in_one_place() -> None:
    version = project()["project"]["version"]
    texts = [*SOURCES, ROOT / "Makefile", ROOT / "mcp_stateless" / "templates" / "cookiecutter.json"]

    assert [path.name for path in texts if path.is_file() and f'"{version}"' in path.read_text()] == []


@pytest.mark.parametrize("lock", ["requirements-dev.txt", "tests/emulator/requirements.txt"])
def test_locks_pin_every_package_and_name_no_address(lock: str) -> None:
    lines = [line for line in (ROOT / lock).read_text().splitlines() if line and not line.startswith("#")]

    assert lines
    assert [line for line in lines if not re.match(r"[\w.\[\]-]+==\S+", line) or "://" in line] == []


def test_the_lock_of_the_conformance_suite_names_no_registry() -> None:
    packages = json.loads((ROOT / "tests" / "conformance" / "package-lock.json").read_text())["packages"]

    assert len(packages) > 100
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert packages["node_modules/conformance-stable"]["version"] == "0.1.16"
    assert packages["node_modules/conformance-next"]["version"] == "0.2.0-alpha.12"


def test_the_lock_fits_every_requirement() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    pinned = {Requirement(line).name: str(Requirement(line).specifier)[2:] for line in lines if "==" in line}
    declared = project()["project"]
    wanted = [
        Requirement(line)
        for line in [
            *declared["dependencies"],
            *(each for extra in declared["optional-dependencies"].values() for each in extra),
        ]
        if not line.startswith("mcp-stateless")
    ]

    assert [str(each) for each in wanted if not each.specifier.contains(pinned[each.name])] == []


def test_the_oldest_allowed_releases_are_those_that_are_tested() -> None:
    tested = [line for line in (ROOT / "tests" / "lowest.txt").read_text().splitlines() if line[0] != "#"]

    allowed = [*project()["project"]["dependencies"], *project()["project"]["optional-dependencies"]["auth"]]
    assert [line.replace("==", ">=").removesuffix(".0") for line in tested] == allowed


@pytest.mark.slow
def test_the_wheel_holds_the_types_marker_and_the_whole_project_template(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, timeout=60, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")

    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    template = ROOT / "mcp_stateless" / "templates"
    files = {f"mcp_stateless/templates/{path.relative_to(template)}" for path in template.rglob("*") if path.is_file()}
    assert {"mcp_stateless/py.typed", "mcp_stateless/server.py"} <= held
    assert files <= held
    assert {name.partition("/")[0] for name in held} == {"mcp_stateless"}
