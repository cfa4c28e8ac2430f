"""Server-sent events as bytes. Only the default event type is used: clients ignore every other name."""

from collections.abc import Iterable
from typing import Final

CONTENT_TYPE: Final = "text/event-stream"


_SEPARATORS: Final = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))
"""Characters at which some parsers of events split lines, although only CR and LF end one; as JSON escapes them."""


def event(data: bytes, *, event_id: str | None = None, retry_ms: int | None = None) -> bytes:
    """One event. `data` is one line of JSON or empty; JSON escapes line breaks, so it never needs splitting."""
    for separator, escaped in _SEPARATORS:
        data = data.replace(separator, escaped)
    lines = [] if event_id is None else [b"id: " + event_id.encode()]
    if retry_ms is not None:
        lines.append(b"retry: %d" % retry_ms)
    return b"\n".join([*lines, b"data: " + data, b"", b""])


def finished(messages: Iterable[bytes]) -> bytes:
    """A whole stream that ends with its last message: nothing to resume, so no event carries an id."""
    return b"".join(event(message) for message in messages)
