"""What the platform allows the request at hand: put into the ASGI scope by the Lambda entry, read by the endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


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


SCOPE_KEY: Final = "mcp_stateless.invocation"
"""Key of the `Invocation` in the ASGI scope."""

LOCAL: Final = Invocation(source="local", max_request_bytes=6 * 1024 * 1024)
"""What holds when no Lambda entry is in front, for example under uvicorn: Lambda's request quota, no deadline."""
