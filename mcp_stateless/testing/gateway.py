"""What stands in front of the function: an HTTP request becomes an event, the result a response, within the quotas."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_stateless import sources
from mcp_stateless.testing import events
from mcp_stateless.testing.environments import Environment, InvocationError, as_environment

FAILED: Final = {"http_api": 500, "rest_api": 502, "function_url": 502, "alb": 502}
"""What the caller gets when the function failed, timed out or answered with something that is no response."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response as the caller sees it: header names in lower case, a header once for each of its values."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The values of a header, joined; None when it is not there."""
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else None


class Gateway:
    """One event source in front of one environment, or of a fleet."""

    def __init__(
        self,
        target: Environment | Callable[..., Any] | object,
        *,
        source: events.Source = "http_api",
        stage: str = "$default",
        context_ms: int = 30_000,
    ) -> None:
        """`target` is an environment, a fleet, a handler or a server; `context_ms` the function's timeout."""
        self._environment = as_environment(target)
        self._source = source
        self._stage = stage
        self._context_ms = context_ms

    def send(self, method: str, url: str, headers: events.Headers = (), body: bytes = b"") -> HttpResponse:
        """Send one request. `url` is what the caller would write, the stage included; only path and query matter."""
        event = from_http_request(self._source, method, url, headers, body, stage=self._stage)
        if len(json.dumps(event, ensure_ascii=False).encode()) > self._quota.max_request_bytes:
            return _message(413, "Request Too Long")
        try:
            result = self._environment.invoke(event, self._context_ms)
        except InvocationError:
            return _message(FAILED[self._source], "Internal Server Error")
        return self._response(result)

    @property
    def _quota(self) -> sources.Source:
        return next(row for row in sources.SOURCES if row.name == self._source)

    def _response(self, result: Any) -> HttpResponse:
        too_large = len(json.dumps(result, ensure_ascii=False).encode()) > self._quota.max_response_bytes
        try:
            response = to_http_response(result)
        except (KeyError, TypeError, ValueError):
            response = None
        if response is None or too_large:
            return _message(FAILED[self._source], "Internal Server Error")
        if self._source in ("http_api", "rest_api"):
            # API Gateway keeps these names for itself.
            return HttpResponse(response.status, tuple(map(_remapped, response.headers)), response.body)
        return response


def from_http_request(
    source: events.Source,
    method: str,
    url: str,
    headers: events.Headers = (),
    body: bytes = b"",
    *,
    stage: str = "$default",
) -> events.Event:
    """Make the event for an HTTP request. A stage at the start of the path is taken for the API's own."""
    parts = urlsplit(url)
    path = parts.path or "/"
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    domain = next((value for name, value in pairs if name.lower() == "host"), parts.netloc)
    common: dict[str, Any] = {"headers": pairs, "body": body, "query": parts.query}
    if stage != "$default" and (path == f"/{stage}" or path.startswith(f"/{stage}/")):
        path = path.removeprefix(f"/{stage}") or "/"
    if source == "function_url":
        return events.function_url_event(method, path, **common)
    if source == "alb":
        return events.alb_event(method, path, **common)
    # A caller that runs locally uses the API under a name that is not its own; the real name is in the event.
    known = domain if "." in domain and not domain.startswith("127.") else events.API_DOMAIN
    if source == "rest_api":
        return events.rest_api_event(method, path, **common, stage=stage.replace("$default", "prod"), domain=known)
    return events.http_api_event(method, path, **common, stage=stage, domain=known)


def to_http_response(result: object) -> HttpResponse:
    """Read a handler's result as its source does.

    Raises:
        KeyError, TypeError, ValueError: it is not a response.
    """
    if not isinstance(result, Mapping) or not isinstance(text := result.get("body") or "", str):
        raise TypeError("A result is a map whose body is text")
    fields: dict[str, list[str]] = {}
    for name, value in (result.get("headers") or {}).items():
        fields.setdefault(name.lower(), []).append(str(value))
    for name, values in (result.get("multiValueHeaders") or {}).items():
        fields[name.lower()] = [str(value) for value in values]
    fields.setdefault("set-cookie", []).extend(result.get("cookies") or [])
    body = base64.b64decode(text, validate=True) if result.get("isBase64Encoded") else text.encode()
    pairs = tuple((name, value) for name, values in fields.items() for value in values)
    return HttpResponse(int(result["statusCode"]), pairs, body)


def _remapped(pair: tuple[str, str]) -> tuple[str, str]:
    return (f"x-amzn-remapped-{pair[0]}", pair[1]) if pair[0] == "www-authenticate" else pair


def _message(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, (("content-type", "application/json"),), json.dumps({"message": text}).encode())
