"""The bundled documents, and a ranked search over their sections (BM25)."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

DOCUMENTS: Final = Path(__file__).with_name("documents")

SATURATION: Final = 1.5
"""BM25's k1: how fast further mentions of a word stop counting."""

LENGTH_PENALTY: Final = 0.75
"""BM25's b: how much a long section must say more to rank the same."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document under one heading, with its words counted."""

    document: str
    heading: str
    text: str
    words: Counter[str]


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Library:
    documents: dict[str, Document]
    sections: tuple[Section, ...]

    def search(self, query: str) -> list[tuple[float, Section]]:
        """Sections that share a word with the query, the best first, each with its score."""
        scored = [(self._score(section, set(_words(query))), section) for section in self.sections]
        return sorted(((score, section) for score, section in scored if score > 0), key=lambda pair: -pair[0])

    def _score(self, section: Section, wanted: set[str]) -> float:
        mean_length = sum(each.words.total() for each in self.sections) / len(self.sections)
        norm = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * section.words.total() / mean_length)
        return sum(
            self._rarity(word) * count * (SATURATION + 1) / (count + norm)
            for word in wanted
            if (count := section.words[word])
        )

    def _rarity(self, word: str) -> float:
        holding = sum(word in section.words for section in self.sections)
        return math.log(1 + (len(self.sections) - holding + 0.5) / (holding + 0.5))


@cache
def library() -> Library:
    """All documents, read once in an execution environment."""
    documents = {path.stem: _document(path) for path in sorted(DOCUMENTS.glob("*.md"))}
    return Library(documents, tuple(part for document in documents.values() for part in _sections(document)))


def _document(path: Path) -> Document:
    text = path.read_text(encoding="utf-8")
    return Document(path.stem, text.partition("\n")[0].removeprefix("# "), text)


def _sections(document: Document) -> list[Section]:
    parts = re.split(r"^#+ ", document.text, flags=re.MULTILINE)[1:]
    return [_section(document.name, *part.split("\n", 1)) for part in parts]


def _section(document: str, heading: str, text: str = "") -> Section:
    return Section(document, heading.strip(), text.strip(), Counter(_words(f"{heading} {text}")))


def _words(text: str) -> list[str]:
    """Words in lower case, a plural's s taken off: enough for short English documents."""
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in re.findall(r"[^\W_]+", text.lower())
    ]
