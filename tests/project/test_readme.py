"""The README shows code only as it stands in a file that the tests run."""

from pathlib import Path
from typing import Final

import pytest

from tests.project.snippets import problems

ROOT: Final = Path(__file__).parents[2]

FILE: Final = """\
before

    # region part
    def part() -> int:
        return 1

    # endregion
after
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(FILE)
    (tmp_path / "Makefile").write_text("run:\n\ttrue\n")
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "ping.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("name", ["README.md", "mcp_stateless/templates/{{cookiecutter.project_name}}/README.md"])
def test_every_block_of_the_readme_is_true(name: str) -> None:
    assert list(problems((ROOT / name).read_text(), (ROOT / name).parent)) == []


def test_a_block_that_equals_its_region_is_accepted(root: Path) -> None:
    text = "<!-- source: code.py#part -->\n```python\ndef part() -> int:\n    return 1\n```\n"

    assert list(problems(text, root)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "<!-- source: code.py#part -->\n```python\ndef part() -> int:\n    return 2\n```\n",
            "differs from code.py#part",
        ),
        ("```python\nx = 1\n```\n", "names no source"),
        ("```\nx = 1\n```\n", "names no source"),
        ("```sh\nmake fly\n```\n", "no target fly"),
        ("```sh\nsam local invoke -e events/pong.json\n```\n", "There is no events/pong.json"),
    ],
)
def test_a_block_that_is_not_true_is_named(text: str, said: str, root: Path) -> None:
    [problem] = problems(text, root)

    assert said in problem


def test_commands_and_pictures_need_no_source(root: Path) -> None:
    text = "```sh\nmake run\nsam local invoke -e events/ping.json\n```\n\n```mermaid\ngraph LR\n```\n"

    assert list(problems(text, root)) == []
