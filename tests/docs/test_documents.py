"""What the documents name is there: files, tables, commands, settings, arguments, methods, figures."""

import importlib.util
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import mcp
import pytest
import yaml

from docs.pictures import FOLDER, PICTURES
from mcp_stateless import Context, MCPServer
from mcp_stateless.cli import main
from mcp_stateless.context import Blocking
from mcp_stateless.settings import PREFIX, Settings
from mcp_stateless.testing import Client, Fleet, Subprocess
from tests.architecture.test_imports import MODULES, layer
from tests.docs.tables import TABLES, stands
from tests.project.snippets import blocks, problems

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE: Final = re.compile(r"`([^`\n]+)`")
LINK: Final = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
SCENARIOS: Final = 33
"""Scenarios of the conformance suite at 2025-11-25."""

TAKERS: Final = (
    MCPServer,
    MCPServer.tool,
    MCPServer.resource,
    MCPServer.prompt,
    Client,
    Client.call_tool,
    Fleet,
    Subprocess,
    mcp.Client,
)
"""Where an argument that a document writes as `name=` may belong."""


@pytest.fixture(params=DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def document(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def prose(path: Path) -> str:
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def inline_code(path: Path) -> Iterator[str]:
    yield from (found[1] for found in INLINE.finditer(prose(path)))


def commands(path: Path) -> Iterator[str]:
    """Lines of shell blocks, and inline code, which may be one."""
    yield from inline_code(path)
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "sh":
            yield from block.code.splitlines()


def slug(heading: str) -> str:
    """The anchor that code hosts give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-")


def test_every_code_block_stands_in_a_file_under_test(document: Path) -> None:
    assert list(problems(document.read_text(encoding="utf-8"), ROOT)) == []


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_as_they_are_made(name: str) -> None:
    assert stands(name) == TABLES[name][1](), "write them anew: python -m tests.docs.tables"


def test_pictures_are_as_they_are_drawn() -> None:
    for picture in PICTURES:
        drawn = (FOLDER / picture.name).read_text(encoding="utf-8")
        assert drawn == picture.svg(), "draw them anew: python -m docs.pictures"


def test_links_lead_to_files_and_headings_of_the_repository(document: Path) -> None:
    for found in LINK.finditer(prose(document)):
        target = (document.parent / found[1]).resolve() if found[1] else document
        assert target.exists(), f"{document.name} links to {found[1]}, which is not there"
        assert ROOT in target.parents
        if found[2]:
            anchors = {slug(heading) for heading in HEADING.findall(prose(target))}
            assert found[2] in anchors, f"{document.name} links to #{found[2]}, which is no heading of {target.name}"


def test_commands_exist(document: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for command in commands(document):
        assert set(re.findall(r"^make ([a-z]+)", command)) <= targets, command
        assert set(re.findall(r"mcp-stateless ([a-z]+)", command)) <= set(main.commands), command
        for module in re.findall(r"python -m ([\w.]+)", command):
            assert importlib.util.find_spec(module), f"there is no module {module}"


def test_settings_that_are_named_exist(document: Path) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", document.read_text(encoding="utf-8"))) <= known


def test_context_methods_that_are_named_exist(document: Path) -> None:
    for name, inner in re.findall(r"\bctx\.(\w+)(?:\.(\w+))?", document.read_text(encoding="utf-8")):
        assert hasattr(Context, name), f"Context has no {name}"
        assert name != "blocking" or not inner or hasattr(Blocking, inner), f"ctx.blocking has no {inner}"


def test_arguments_that_are_named_exist(document: Path) -> None:
    known = {parameter for taker in TAKERS for parameter in inspect.signature(taker).parameters}
    named = {found[1] for code in inline_code(document) if (found := re.match(r"([a-z]\w*)=", code))}
    named |= {
        argument
        for code in inline_code(document)
        for call in re.findall(r"server\.(?:tool|resource|prompt)\((.*)\)", code)
        for argument in re.findall(r"(\w+)=", call)
    }
    assert named <= known


def test_servers_methods_that_are_named_exist(document: Path) -> None:
    for name in re.findall(r"\bserver\.(\w+)", document.read_text(encoding="utf-8")):
        assert hasattr(MCPServer, name) or name == "py", f"MCPServer has no {name}"


def test_the_modules_stand_in_the_order_of_their_layers() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", (ROOT / "docs" / "architecture.md").read_text("utf-8"), re.MULTILINE)
    listed = [module for row in rows for module in re.findall(r"`([a-z_]+)(?:\.py|/)`", row)]
    layers = [layer(module) for module in listed]

    assert layers == sorted(layers)
    assert sorted(listed) == sorted({name.partition(".")[0] for name in MODULES} - {""})


def test_the_newest_entry_of_the_changelog_is_the_packages_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert newest is not None
    assert newest[1] == project["version"]


def test_the_conformance_figure_counts_what_is_expected_to_fail() -> None:
    failures = ROOT / "tests" / "conformance" / "expected_failures" / "2025-11-25.yml"
    expected = yaml.safe_load(failures.read_text(encoding="utf-8"))["server"] if failures.exists() else []
    row = re.search(r"^\| \*\*mcp-stateless\*\* \| (.+?) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)

    assert row is not None
    assert row[1] == f"{SCENARIOS - len(expected)} of {SCENARIOS}"
