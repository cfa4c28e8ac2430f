"""Media types of requests, read leniently: hosts send `*/*`, one type, both in any order, or nothing."""

from collections.abc import Iterator
from typing import Final

from mcp_stateless.protocol.sse import CONTENT_TYPE as SSE

JSON: Final = "application/json"


def is_json(content_type: str | None) -> bool:
    """Whether a body is declared as JSON; parameters and case do not matter."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == JSON


def accepts(header: str | None) -> tuple[bool, bool]:
    """Whether the caller takes JSON, and whether it takes SSE.

    JSON is taken unless it is refused with `q=0`: servers of other makes are asked for `text/event-stream` alone by
    clients that then read JSON well. SSE is taken only by a caller that names it, so `*/*` is answered as JSON.
    """
    if header is None:
        return True, False
    qualities = dict(_ranges(header))
    wildcard = qualities.get("application/*", qualities.get("*/*", 1.0))
    return qualities.get(JSON, wildcard) > 0, qualities.get(SSE, 0.0) > 0


def _ranges(header: str) -> Iterator[tuple[str, float]]:
    for item in header.split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            yield name, float(quality)
        except ValueError:
            yield name, 1.0
