"""What the text of a CSV cell says: nothing, a boolean, a number, a date, or just text."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

Kind = Literal["empty", "boolean", "integer", "number", "date", "datetime", "text"]

Value = bool | int | float | date | datetime | str

EMPTY: Final = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""Spellings of a missing value, in lower case."""

# Digits after a leading zero are a code (a postcode, an account), never an amount. 18 digits stay exact in 64 bits.
INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})", re.ASCII)
NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
TIME: Final = r"[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?"
DATETIME: Final = re.compile(rf"{DATE.pattern}(?:{TIME})?", re.ASCII)

LARGEST: Final = 1e300
"""Numbers beyond it stay text: sums of them leave the range of a float."""


def is_empty(cell: str) -> bool:
    return cell.strip().lower() in EMPTY


def parse(cell: str, kind: Kind) -> Value | None:
    """The value of a cell read as `kind`, or None where it cannot be read so."""
    return _PARSERS[kind](cell.strip())


def sort_key(cell: str, kind: Kind) -> Any:
    """What cells of one kind are ordered by. Only for cells that can be read as `kind`."""
    return parse(cell, kind)


def infer(cells: Iterable[str]) -> Kind:
    """The narrowest kind that every cell fits; empty cells fit all of them."""
    filled = [cell for cell in cells if not is_empty(cell)]
    if not filled:
        return "empty"
    return next(kind for kind in _NARROWEST_FIRST if all(parse(cell, kind) is not None for cell in filled))


def _boolean(cell: str) -> bool | None:
    return {"true": True, "false": False, "yes": True, "no": False}.get(cell.lower())


def _integer(cell: str) -> int | None:
    return int(cell) if INTEGER.fullmatch(cell) else None


def _number(cell: str) -> float | None:
    if not NUMBER.fullmatch(cell):
        return None
    number = float(cell)
    return number if math.isfinite(number) and abs(number) <= LARGEST else None


def _date(cell: str) -> date | None:
    try:
        return date.fromisoformat(cell) if DATE.fullmatch(cell) else None
    except ValueError:
        return None


def _datetime(cell: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(cell) if DATETIME.fullmatch(cell) else None
    except ValueError:
        return None
    # A time without a zone is taken as UTC, so that a column that mixes both still has an order.
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _text(cell: str) -> str:
    return cell


_PARSERS: Final[Mapping[Kind, Callable[[str], Value | None]]] = {
    "empty": lambda cell: None,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "date": _date,
    "datetime": _datetime,
    "text": _text,
}

_NARROWEST_FIRST: Final[tuple[Kind, ...]] = ("boolean", "integer", "number", "date", "datetime", "text")
