"""Rows of a table by conditions, in an order; comparisons follow the kind of the column, not the spelling."""

from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from handler.cells import Kind, is_empty, parse, sort_key
from handler.tables import Table
from mcp_stateless import ToolError

Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "is empty", "is not empty"]


class Condition(BaseModel):
    """One test of one column. Rows must pass all conditions."""

    column: str
    comparison: Comparison = "="
    value: str = Field("", description="Compared as a number, date or text, by the kind of the column")


class Rows(BaseModel):
    header: list[str]
    rows: list[list[str]]
    matched: int = Field(description="Rows that pass all conditions; more than are listed when the limit was lower")


def matching_rows(table: Table, conditions: Iterable[Condition]) -> list[tuple[str, ...]]:
    """The rows that pass every condition, in the order of the table.

    Raises:
        ToolError: a column does not exist, or a value cannot be compared with the values of its column.
    """
    tests = [_test(table, condition) for condition in conditions]
    return [row for row in table.rows if all(test(row) for test in tests)]


def sorted_rows(
    table: Table, rows: list[tuple[str, ...]], column: str, *, descending: bool = False
) -> list[tuple[str, ...]]:
    """Rows ordered by one column; those without a value come last either way."""
    position, kind = table.position(column), table.kind(column)
    filled = [row for row in rows if not is_empty(row[position])]
    empty = [row for row in rows if is_empty(row[position])]
    return sorted(filled, key=lambda row: sort_key(row[position], kind), reverse=descending) + empty


def _test(table: Table, condition: Condition) -> Callable[[tuple[str, ...]], bool]:
    position = table.position(condition.column)
    match condition.comparison:
        case "is empty":
            return lambda row: is_empty(row[position])
        case "is not empty":
            return lambda row: not is_empty(row[position])
        case "contains":
            wanted = condition.value.lower()
            return lambda row: wanted in row[position].lower()
        case comparison:
            return _ordering_test(position, table.kind(condition.column), _COMPARISONS[comparison], condition)


def _ordering_test(
    position: int, kind: Kind, compare: Callable[[Any, Any], bool], condition: Condition
) -> Callable[[tuple[str, ...]], bool]:
    # A limit of 2.5 is a fair question to a column of integers.
    kind = "number" if kind == "integer" else kind
    wanted = parse(condition.value, kind)
    if wanted is None:
        raise ToolError(
            f"The column {condition.column!r} holds {kind} values, and {condition.value!r} is none. "
            "Use a value of that kind, or the comparison 'contains'"
        )
    return lambda row: not is_empty(row[position]) and compare(sort_key(row[position], kind), wanted)


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
