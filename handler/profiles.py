"""What a column holds: its kind, its gaps, its distribution, and what looks wrong with it."""

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from handler.cells import Kind, infer, is_empty, parse, sort_key

TOP: Final = 5
"""Most frequent values that a profile lists."""

IDENTIFIER_FROM: Final = 20
"""Values from which it says something that all of them differ."""

NEARLY_ALL: Final = 0.9
"""Share of numbers from which a text column is taken for a number column with stray cells in it."""


class ValueCount(BaseModel):
    value: str
    count: int


class NumberSummary(BaseModel):
    """Numbers rounded to ten significant digits; the quartiles include both ends."""

    minimum: float
    first_quartile: float
    median: float
    third_quartile: float
    maximum: float
    mean: float
    standard_deviation: float | None = Field(description="Of the sample; null for a single value")


class ColumnProfile(BaseModel):
    name: str
    kind: Kind
    filled: int = Field(description="Cells with a value")
    empty: int = Field(description="Cells that are blank or say NA, NaN, null or none")
    distinct: int = Field(description="Different values among the filled cells")
    first: str | None = Field(description="Earliest date or time, or first text in alphabetical order")
    last: str | None = Field(description="Latest date or time, or last text in alphabetical order")
    numbers: NumberSummary | None = Field(description="For integer and number columns")
    top: list[ValueCount] = Field(description="The most frequent values")
    notes: list[str] = Field(description="What to check before relying on this column")


class Profile(BaseModel):
    rows: int
    delimiter: str
    columns: list[ColumnProfile]


def profile_column(name: str, cells: Sequence[str]) -> ColumnProfile:
    filled = [cell.strip() for cell in cells if not is_empty(cell)]
    kind = infer(filled)
    counts = Counter(filled)
    ordered = filled if kind in ("date", "datetime", "text") else []
    return ColumnProfile(
        name=name,
        kind=kind,
        filled=len(filled),
        empty=len(cells) - len(filled),
        distinct=len(counts),
        first=min(ordered, key=lambda cell: sort_key(cell, kind), default=None),
        last=max(ordered, key=lambda cell: sort_key(cell, kind), default=None),
        numbers=_numbers([float(cell) for cell in filled]) if kind in ("integer", "number") else None,
        top=[ValueCount(value=value, count=count) for value, count in counts.most_common(TOP)],
        notes=_notes(kind, cells, counts),
    )


def _numbers(values: list[float]) -> NumberSummary:
    several = len(values) > 1
    first, median, third = statistics.quantiles(values, n=4, method="inclusive") if several else values * 3
    return NumberSummary(
        minimum=_rounded(min(values)),
        first_quartile=_rounded(first),
        median=_rounded(median),
        third_quartile=_rounded(third),
        maximum=_rounded(max(values)),
        mean=_rounded(statistics.fmean(values)),
        standard_deviation=_rounded(statistics.stdev(values)) if several else None,
    )


def _rounded(number: float) -> float:
    return float(f"{number:.10g}")


def _notes(kind: Kind, cells: Sequence[str], counts: Counter[str]) -> list[str]:
    filled = counts.total()
    notes = []
    if kind == "empty":
        notes.append("No cell has a value")
    if filled and filled < len(cells) / 2:
        notes.append("More than half of the cells are empty: statistics describe the rest only")
    if kind in ("integer", "text") and len(counts) == filled >= IDENTIFIER_FROM:
        notes.append("Every value is different: this may be an identifier, not a measurement")
    if filled > 1 and len(counts) == 1:
        notes.append("Every value is the same: this column tells the rows apart by nothing")
    if kind == "text":
        notes.extend(_strays(counts))
    return notes


def _strays(counts: Counter[str]) -> list[str]:
    strays = [value for value in counts if parse(value, "number") is None]
    numeric = counts.total() - sum(counts[value] for value in strays)
    if numeric < NEARLY_ALL * counts.total():
        return []
    shown = ", ".join(repr(value[:40]) for value in strays[:TOP])
    return [f"{numeric} of {counts.total()} values are numbers; these are not: {shown}"]
