"""What a docstring says about a function and its parameters: Google, NumPy and Sphinx style.

Owns the split into description and parameter texts; it never fails, what it cannot read stays in the description.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Final

_GOOGLE_HEAD: Final = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*$")
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_HEAD: Final = re.compile(r"(?:Parameters|Other Parameters)\s*$")
_NUMPY_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?$")
_SPHINX_ENTRY: Final = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_SPHINX_TYPE: Final = re.compile(r":type\s+\w+\s*:")


@dataclass(slots=True)
class Docstring:
    """`description` is the text without the parameter sections."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(text: str | None) -> Docstring:
    parsed = Docstring()
    if not text:
        return parsed
    lines, kept, at = cleandoc(text).splitlines(), [], 0
    while at < len(lines):
        for read in _READERS:
            end = read(lines, at, parsed.parameters)
            if end > at:
                at = end
                break
        else:
            kept.append(lines[at])
            at += 1
    parsed.description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return parsed


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block_end(lines: list[str], at: int, indent: int) -> int:
    """The first line from `at` on that is neither blank nor deeper than `indent`."""
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > indent):
        at += 1
    return at


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


def _read_google(lines: list[str], at: int, found: dict[str, str]) -> int:
    if not _GOOGLE_HEAD.match(lines[at]):
        return at
    end = _block_end(lines, at + 1, 0)
    body = [line for line in lines[at + 1 : end] if line.strip()]
    if not body:
        return at
    depth, name = _indent(body[0]), None
    for line in body:
        entry = _GOOGLE_ENTRY.match(line.strip()) if _indent(line) <= depth else None
        if entry:
            name = entry[1]
            found[name] = entry[2].strip()
        elif name is not None:
            found[name] = _joined([found[name], line])
    return end


def _read_numpy(lines: list[str], at: int, found: dict[str, str]) -> int:
    underlined = at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1])
    if not (_NUMPY_HEAD.match(lines[at]) and underlined):
        return at
    at += 2
    while at < len(lines):
        entry = _NUMPY_ENTRY.match(lines[at])
        heading = at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1])
        if heading or (lines[at].strip() and entry is None):
            break
        end = _block_end(lines, at + 1, 0)
        if entry:
            found[entry[1]] = _joined(lines[at + 1 : end])
        at = end
    return at


def _read_sphinx(lines: list[str], at: int, found: dict[str, str]) -> int:
    entry = _SPHINX_ENTRY.match(lines[at])
    if entry is None and not _SPHINX_TYPE.match(lines[at]):
        return at
    end = at + 1
    while end < len(lines) and lines[end].strip() and _indent(lines[end]) > 0:
        end += 1
    if entry:
        found[entry[1]] = _joined([entry[2], *lines[at + 1 : end]])
    return end


_READERS: Final[tuple[Callable[[list[str], int, dict[str, str]], int], ...]] = (
    _read_google,
    _read_numpy,
    _read_sphinx,
)
