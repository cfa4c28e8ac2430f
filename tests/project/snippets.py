"""Code blocks of a Markdown text, and the regions of files that they must equal.

A block with code in it is preceded by a line that names where it stands:

    <!-- source: handler/app.py#profile_csv -->

The file has the region between `# region profile_csv` and `# endregion`; without a `#` the whole file is meant.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BLOCK: Final = re.compile(
    r"(?:^<!-- source: (?P<source>\S+) -->\n+)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)

SHELL: Final = frozenset({"sh", "console"})
"""Commands have no file to stand in; what they name is checked instead."""

PICTURES: Final = frozenset({"mermaid", "text"})

COMMAND: Final = re.compile(r"\bmake +(?P<target>[a-z]+)|-e +(?P<event>events/\S+\.json)")


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    code: str
    source: str | None


def blocks(markdown: str) -> list[Block]:
    return [Block(found["language"], found["code"], found["source"]) for found in BLOCK.finditer(markdown)]


def problems(markdown: str, root: Path) -> Iterator[str]:
    """What is wrong with the code blocks of a text, each in one line."""
    for block in blocks(markdown):
        first = block.code.partition("\n")[0]
        if block.source:
            if block.code.rstrip() != region(root, block.source).rstrip():
                yield f"The block {first!r} differs from {block.source}"
        elif block.language in SHELL:
            yield from _unknown_names(block.code, root)
        elif block.language not in PICTURES:
            yield f"The block {first!r} names no source"


def region(root: Path, source: str) -> str:
    """The text that `path` or `path#name` stands for, without the indentation that all its lines share."""
    path, _, name = source.partition("#")
    text = (root / path).read_text(encoding="utf-8")
    if not name:
        return text
    found = re.search(rf"^\s*# region {re.escape(name)}\n(.*?)^\s*# endregion", text, re.MULTILINE | re.DOTALL)
    assert found, f"{path} has no region {name}"
    return textwrap.dedent(found[1]).strip("\n")


def _unknown_names(commands: str, root: Path) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for found in COMMAND.finditer(commands):
        if found["target"] and found["target"] not in targets:
            yield f"The Makefile has no target {found['target']}"
        if found["event"] and not (root / found["event"]).is_file():
            yield f"There is no {found['event']}"
