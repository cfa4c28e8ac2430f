"""`mcp-stateless new` writes a project that works at once, and never touches what is there."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent

from mcp_stateless.errors import ConfigurationError
from mcp_stateless.scaffold import write_project
from tests.project.development_server import serving
from tests.project.sam import ENVIRONMENT, ROOT, sam

TEMPLATE: Final = ROOT / "mcp_stateless" / "templates"
LONGEST_NAME: Final = "text-tools-with-as-long-a-name-as-the-rules-of-new-let-one-have"
"""It must not break the line length that the project's own checks ask for."""

TEST_OF_THE_CHANGE: Final = """\
from mcp_stateless.testing import Client

from handler.app import lambda_handler


def test_texts_that_agree_are_said_to() -> None:
    result = Client(lambda_handler).call_tool("compare_texts", {"before": "a", "after": "a"})

    assert result.text == "No line differs"
"""


def new(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcp_stateless.cli", "new", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def make(*targets: str, cwd: Path) -> str:
    command = ["make", *targets, f"PYTHON={sys.executable}"]
    finished = subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=110, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


async def call(url: str, tool: str, arguments: dict[str, str]) -> str:
    with anyio.fail_after(20):
        async with Client(url) as client:
            [block] = (await client.call_tool(tool, arguments)).content
            assert isinstance(block, TextContent)
            return block.text


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_from_an_empty_folder_to_a_changed_tool_that_is_tested_called_and_built(tmp_path: Path) -> None:
    written = new(LONGEST_NAME, cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    folder = tmp_path / LONGEST_NAME

    app = folder / "handler" / "app.py"
    app.write_text(app.read_text().replace("The texts are the same, line by line", "No line differs"))
    (folder / "tests" / "test_same.py").write_text(TEST_OF_THE_CHANGE)

    assert "9 passed" in make("check", "test", cwd=folder)
    python = str(folder / ".venv" / "bin" / "python")
    with serving(folder, python=python) as server:
        said = anyio.run(call, server.url, "compare_texts", {"before": "a text", "after": "a text"})
    assert said == "No line differs"
    assert "is a valid SAM Template" in sam("validate", "--lint", cwd=folder)
    sam("build", cwd=folder)
    built = folder / ".aws-sam" / "build" / "Server"
    assert "No line differs" in (built / "handler" / "app.py").read_text()
    assert (built / "mcp_stateless" / "server.py").exists()
    assert not list(built.glob("uvicorn*"))


@pytest.mark.slow
def test_a_project_with_polling_passes_its_checks_and_has_a_worker(tmp_path: Path) -> None:
    written = new(LONGEST_NAME, "--polling", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    folder = tmp_path / LONGEST_NAME

    for checks in (["ruff", "format", "--check", "."], ["ruff", "check", "."], ["mypy"], ["pytest", "-q"]):
        finished = subprocess.run(
            [sys.executable, "-m", *checks],
            cwd=folder,
            env=ENVIRONMENT | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "10 passed" in finished.stdout
    assert "is a valid SAM Template" in sam("validate", "--lint", cwd=folder)
    makefile = (folder / "Makefile").read_text()
    assert "\nbuild-Server build-Worker: " in makefile
    assert "--guided $(PARAMETERS) Polling=on\n" in makefile


def test_a_project_without_polling_has_no_trace_of_it(tmp_path: Path) -> None:
    folder = write_project("weather-tools", tmp_path).folder

    texts = {name: (folder / name).read_text() for name in files(folder) if not name.endswith(".whl")}
    assert [name for name, text in texts.items() if "olling" in text or "#%" in text] == []


def test_a_project_from_a_source_checkout_carries_a_wheel_of_it(tmp_path: Path) -> None:
    project = write_project("weather-tools", tmp_path)

    assert project.wheel is not None
    assert (project.folder / "wheels" / project.wheel).is_file()
    requirement = "mcp-stateless==" + project.wheel.split("-")[1]
    assert requirement in (project.folder / "requirements.txt").read_text().splitlines()
    assert '"weather-tools",' in (project.folder / "handler" / "app.py").read_text()
    assert not [name for name in files(project.folder) if "cookiecutter" in name]


def test_a_given_wheel_is_the_one_that_is_carried(tmp_path: Path) -> None:
    wheel = tmp_path / "mcp_stateless-9.9.9-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")

    written = new("weather-tools", "--wheel", str(wheel), cwd=tmp_path)

    assert written.returncode == 0
    carried = tmp_path / "weather-tools" / "wheels" / wheel.name
    assert carried.read_bytes() == b"a wheel"
    assert f"wheels/{wheel.name}" in written.stdout


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "weather-tools").mkdir()
    (tmp_path / "weather-tools" / "notes.txt").write_text("mine")

    refused = new("weather-tools", cwd=tmp_path)

    assert refused.returncode == 1
    assert "weather-tools exists already" in refused.stderr
    assert files(tmp_path) == {"weather-tools/notes.txt"}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Weather",
        "weather_tools",
        "-weather",
        "weather-",
        "we--ather",
        "../weather",
        "a/b",
        "wetter\n",
        "é",
        f"{LONGEST_NAME}x",
    ],
)
def test_an_unfit_name_is_refused_with_an_example_of_a_good_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="for example weather-tools"):
        write_project(name, tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wheel", ["mcp_stateless-1-py3-none-any.whl", "README.md"])
def test_what_is_no_wheel_of_the_package_is_refused(wheel: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("no wheel")

    refused = new("weather-tools", "--wheel", wheel, cwd=tmp_path)

    assert refused.returncode == 1
    assert f"{wheel} is not a wheel of mcp-stateless" in refused.stderr
    assert files(tmp_path) == {"README.md"}


def test_sam_init_writes_the_same_project_from_the_same_template(tmp_path: Path) -> None:
    ours = write_project("weather-tools", tmp_path).folder
    theirs = tmp_path / "sam" / "weather-tools"
    theirs.parent.mkdir()
    # Cookiecutter, which SAM runs, leaves notes in the home.
    sam("init", "--location", str(TEMPLATE), "--name", "weather-tools", "--no-input", cwd=theirs.parent, home=tmp_path)

    wheels = {name for name in files(ours) if name.endswith(".whl")}
    assert files(theirs) == files(ours) - wheels
    changed = {"requirements.txt", "samconfig.toml"}
    for name in files(ours) - wheels - changed:
        assert (theirs / name).read_bytes() == (ours / name).read_bytes(), name
    assert "mcp-stateless" in (theirs / "requirements.txt").read_text().splitlines()
    assert 'function_logical_id = "Server"' in (theirs / "samconfig.toml").read_text()  # SAM adds its own beside it


def test_the_command_says_its_version_and_shows_examples(tmp_path: Path) -> None:
    def printed(*arguments: str) -> str:
        command = [sys.executable, "-m", "mcp_stateless.cli", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout

    assert "version 0." in printed("--version")
    assert "Example: mcp-stateless new" in printed("new", "--help")
    assert "Example: mcp-stateless dev" in printed("dev", "--help")
