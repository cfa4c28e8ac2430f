"""The endpoint alone and the FastAPI app around it: the same answers, byte for byte, headers included."""

from typing import Any

import pytest

from mcp_stateless.testing import events, lambda_context
from tests.http.door import BOTH, JSON_HEADERS, LEGACY, MODERN, initialize, modern_headers, modern_meta, request
from tests.http.test_modern import CACHEABLE, METHODS, sample

BUILDERS: dict[str, Any] = {
    "http_api": events.http_api_event,
    "rest_api": events.rest_api_event,
    "function_url": events.function_url_event,
    "alb": events.alb_event,
}
ORIGIN = {"origin": "http://localhost:6274"}
PREFLIGHT = {**ORIGIN, "access-control-request-method": "POST"}
LIST = request("tools/list")


def modern(method: str, params: dict[str, Any] | None = None) -> tuple[str, str, dict[str, str], object]:
    full = {**(params or {}), "_meta": modern_meta()}
    return "POST", "/mcp", {**JSON_HEADERS, **modern_headers(method, full)}, request(method, full)


def post(body: object, **headers: str) -> tuple[str, str, dict[str, str], object]:
    return "POST", "/mcp", {**JSON_HEADERS, **{k.replace("_", "-"): v for k, v in headers.items()}}, body


REQUESTS: list[tuple[str, str, dict[str, str], object]] = [
    *(modern(method, METHODS.get(method)) for method in {*METHODS, *CACHEABLE, "ping", "no/such"}),
    *(post(request(method, params)) for method, params in METHODS.items()),
    *(post(request("initialize", initialize(version))) for version in (*LEGACY, MODERN)),
    *(post(LIST, mcp_protocol_version=version) for version in (*LEGACY, MODERN, "1999-01-01", "")),
    *(post(body) for body in ("{bad", "", "[]", [LIST, LIST], "null", "[" * 5000, {**LIST, "id": None})),
    post(request("tools/call", {"name": "add", "arguments": {"a": 1}})),
    post({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    post(LIST, content_type="text/plain"),
    post(LIST, accept="application/json;q=0"),
    post(LIST, accept="text/event-stream, application/json;q=0"),
    post(LIST, accept=BOTH, **ORIGIN),
    post(LIST, origin="https://evil.example"),
    post(LIST, x="a" * 40_000),
    ("POST", "/mcp/", JSON_HEADERS, LIST),
    *((method, "/mcp", ORIGIN, None) for method in ("GET", "DELETE", "PUT", "PATCH", "HEAD")),
    ("OPTIONS", "/mcp", PREFLIGHT, None),
    ("OPTIONS", "/mcp", {**PREFLIGHT, "origin": "https://evil.example"}, None),
    *((method, path, {}, None) for path in ("/health", "/health/") for method in ("GET", "HEAD", "POST", "OPTIONS")),
]


@pytest.mark.parametrize("source", BUILDERS)
def test_both_weights_answer_alike(source: str) -> None:
    server = sample()
    alone, full = server.lambda_handler(), server.lambda_handler(server.app())
    statuses = set()
    for method, path, headers, body in REQUESTS:
        event = BUILDERS[source](method, path, headers, body)
        answer = alone(event, lambda_context())
        assert answer == full(event, lambda_context()), (method, path, headers, body)
        statuses.add(answer["statusCode"])
    assert statuses >= {200, 202, 204, 400, 403, 404, 405, 406, 415, 431}
