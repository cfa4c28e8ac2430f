"""How far a statistic of a sample can be trusted: the bootstrap, with percentile intervals."""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from pydantic import BaseModel, Field

from handler.cells import is_empty, parse
from handler.tables import Table
from mcp_stateless import ToolError

Statistic = Literal["mean", "median", "standard deviation"]

FEWEST: Final = 5
"""Values below which resampling shows the sample and nothing else."""

DRAWS_A_BATCH: Final = 200_000
"""Values drawn between two progress reports: some tens of milliseconds on a whole CPU, a second on a small function."""

FEWEST_BATCHES: Final = 10


class Estimate(BaseModel):
    statistic: Statistic
    value: float = Field(description="Of the values as they are")
    low: float
    high: float = Field(description="low to high is the interval: where the value lies in most samples like this one")
    standard_error: float
    values: int = Field(description="Numbers in the column; empty cells are left out")
    resamples: int


class Bootstrap:
    """Resamples of one sample. The seed comes from the values: the same question gets the same answer."""

    def __init__(self, values: Sequence[float], statistic: Statistic) -> None:
        self.estimates: list[float] = []
        self._values = values
        self._statistic = statistic
        self._random = random.Random(f"{statistic} of {list(values)}")

    @property
    def batch(self) -> int:
        """How many resamples take a moment."""
        return max(1, DRAWS_A_BATCH // len(self._values))

    def draw(self, resamples: int) -> None:
        """Draw further resamples; pure computing, so call it in a thread."""
        compute, values = _COMPUTED[self._statistic], self._values
        self.estimates += [compute(self._random.choices(values, k=len(values))) for _ in range(resamples)]

    def interval(self, confidence: float) -> tuple[float, float]:
        """The middle part of the estimates so far that holds this share of them."""
        ordered = sorted(self.estimates)
        outside = int(len(ordered) * (1 - confidence) / 2)
        return ordered[outside], ordered[-1 - outside]

    def estimate(self, confidence: float) -> Estimate:
        low, high = self.interval(confidence)
        return Estimate(
            statistic=self._statistic,
            value=_rounded(_COMPUTED[self._statistic](self._values)),
            low=_rounded(low),
            high=_rounded(high),
            standard_error=_rounded(statistics.stdev(self.estimates)),
            values=len(self._values),
            resamples=len(self.estimates),
        )


def batches(resamples: int, most: int) -> list[int]:
    """Split the work, so that each part takes a moment and there are several to report on."""
    size = max(1, min(most, resamples // FEWEST_BATCHES))
    return [min(size, resamples - start) for start in range(0, resamples, size)]


def numbers(table: Table, column: str) -> list[float]:
    """The numbers of a column.

    Raises:
        ToolError: there is no such column, it holds something else, or there are too few.
    """
    cells = [cell for cell in table.column(column) if not is_empty(cell)]
    values = [parse(cell, "number") for cell in cells]
    found = [value for value in values if isinstance(value, float)]
    if len(found) < len(cells):
        stray = next(cell for cell, value in zip(cells, values, strict=True) if value is None)
        raise ToolError(f"The column {column!r} is not all numbers: {stray[:40]!r}. Mend it, or leave such rows out")
    if len(found) < FEWEST:
        raise ToolError(f"The column {column!r} holds {len(found)} numbers; an interval takes at least {FEWEST}")
    return found


def _rounded(number: float) -> float:
    return float(f"{number:.10g}")


_COMPUTED: Final[Mapping[Statistic, Callable[[Sequence[float]], float]]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "standard deviation": statistics.stdev,
}
