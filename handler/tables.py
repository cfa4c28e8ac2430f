"""CSV text in, a table of equally long rows out; or an error that says which line to mend."""

import csv
from dataclasses import dataclass
from typing import Final

from handler.cells import Kind, infer
from mcp_stateless import ToolError

MOST_CELLS: Final = 500_000
"""Cells in one table: about two seconds of work in the 256 MB that template.yaml gives."""

DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class Table:
    """Header and rows; every row is as long as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str

    def column(self, name: str) -> list[str]:
        position = self.position(name)
        return [row[position] for row in self.rows]

    def kind(self, name: str) -> Kind:
        return infer(self.column(name))

    def position(self, name: str) -> int:
        """Where the column stands.

        Raises:
            ToolError: there is no such column; the text lists those there are.
        """
        if name not in self.header:
            raise ToolError(f"There is no column {name!r}. The columns are: {', '.join(self.header)}")
        return self.header.index(name)


def read_table(text: str) -> Table:
    """Read CSV text whose first line names the columns.

    Raises:
        ToolError: the text is not a table; the text names the line and what is wrong with it.
    """
    lines = text.removeprefix("\ufeff").strip("\r\n")
    if not lines:
        raise ToolError("The CSV text is empty: pass a header line and at least one row")
    delimiter = _delimiter(lines.partition("\n")[0])
    reader = csv.reader(lines.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        header = _header(next(reader))
        rows = [_row(cells, header, reader.line_num) for cells in reader if cells]
    except csv.Error as error:
        raise ToolError(f"Line {reader.line_num} is not CSV: {error}") from error
    if len(rows) * len(header) > MOST_CELLS:
        raise ToolError(f"The table has {len(rows) * len(header)} cells; pass a sample of at most {MOST_CELLS}")
    return Table(header, tuple(rows), delimiter)


def _delimiter(first_line: str) -> str:
    return max(DELIMITERS, key=first_line.count)


def _header(cells: list[str]) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    for position, name in enumerate(names, start=1):
        if not name:
            raise ToolError(f"Column {position} has no name: the first line must name every column")
        if names.count(name) > 1:
            raise ToolError(f"The column name {name!r} is used twice: rename one of them in the first line")
    return names


def _row(cells: list[str], header: tuple[str, ...], line: int) -> tuple[str, ...]:
    if len(cells) != len(header):
        raise ToolError(
            f"Line {line} has {len(cells)} cells, the header {len(header)}. "
            "A cell that holds the delimiter needs double quotes around it"
        )
    return tuple(cells)
