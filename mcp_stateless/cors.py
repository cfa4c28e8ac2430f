"""Which browser pages may call the server, and how they are told: the one place for `Origin` and CORS.

`Origin` and `Host` are independent here. Behind API Gateway the host is AWS's business; a page's origin is ours.
"""

from collections.abc import Mapping, Sequence
from typing import Final

REQUEST_HEADERS: Final = (
    "content-type",
    "accept",
    "authorization",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "mcp-method",
    "mcp-name",
    "traceparent",
    "tracestate",
)
"""What an MCP client in a browser sends; `mcp-param-*` is added as it is asked for."""

EXPOSED_HEADERS: Final = "mcp-session-id, www-authenticate, retry-after"

MAX_AGE_S: Final = 7200
"""Longest time Chromium keeps a preflight."""


class Cors:
    """An allow-list of origins: exact ones, `http://localhost:*` for any port, `*` for every page."""

    def __init__(self, allowed_origins: Sequence[str]) -> None:
        self._exact = frozenset(allowed_origins)
        self._any_port = tuple(origin.removesuffix("*") for origin in allowed_origins if origin.endswith(":*"))

    def allows(self, origin: str | None) -> bool:
        """Requests without an origin do not come from a page, and pass."""
        return origin is None or "*" in self._exact or self._lists(origin.lower())

    def response_headers(self, origin: str | None) -> dict[str, str]:
        """Headers of every response, errors included: without them a page cannot even read why it was refused."""
        if origin is None or not self.allows(origin):
            return {"vary": "Origin"}
        return {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": EXPOSED_HEADERS,
            "vary": "Origin",
        }

    def preflight_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        if not self.allows(headers.get("origin")):
            return {}
        asked = (name.strip().lower() for name in headers.get("access-control-request-headers", "").split(","))
        parameters = [name for name in asked if name.startswith("mcp-param-") and name.replace("-", "").isalnum()]
        return {
            "access-control-allow-methods": "POST, GET, DELETE, OPTIONS",
            "access-control-allow-headers": ", ".join((*REQUEST_HEADERS, *parameters)),
            "access-control-max-age": str(MAX_AGE_S),
        }

    def _lists(self, origin: str) -> bool:
        if origin in self._exact:
            return True
        return any(origin.startswith(prefix) and origin[len(prefix) :].isdecimal() for prefix in self._any_port)
