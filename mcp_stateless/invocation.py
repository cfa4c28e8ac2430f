"""What the platform allows the request at hand: put into the ASGI scope by the Lambda entry, read by the endpoint."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HOLD_MARGIN_S: Final = 1.0
"""Kept back from the deadline when a request is held: for one more read, and for the answer."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The limits of one request, and the Lambda event behind it."""

    source: str
    """`http_api`, `rest_api`, `function_url`, `alb` or `local`."""
    max_request_bytes: int
    """Largest HTTP body that is read."""
    max_response_bytes: int | None = None
    """Largest *encoded invocation result*, the JSON that carries the body as a string. None: no limit."""
    deadline: float | None = None
    """`time.monotonic()` at which the answer must be on its way. None: no limit."""
    limit: str = "the server's time limit"
    """What sets the deadline, in words for the caller."""
    event: Mapping[str, object] | None = None
    context: object | None = None

    def time_for(self, hold_s: float) -> float:
        """`hold_s`, or what the deadline leaves of it: held for longer, a request is answered by the gateway."""
        if self.deadline is None:
            return hold_s
        return max(0.0, min(hold_s, self.deadline - time.monotonic() - HOLD_MARGIN_S))


SCOPE_KEY: Final = "mcp_stateless.invocation"
"""Key of the `Invocation` in the ASGI scope."""

LOCAL: Final = Invocation(source="local", max_request_bytes=6 * 1024 * 1024)
"""What holds when no Lambda entry is in front, for example under uvicorn: Lambda's request quota, no deadline."""
