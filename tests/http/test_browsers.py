"""Pages in a browser: which origins are served, and what CORS tells them."""

import pytest

from mcp_stateless import MCPServer, Settings
from tests.http.door import MODERN, Door, Weight, initialize, request

LIST = request("tools/list")
ALLOWED = "https://allowed.example"
PREFLIGHT = {
    "origin": ALLOWED,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region",
}


def door(weight: Weight, *origins: str, source: str = "http_api") -> Door:
    server = MCPServer("sample", "1", settings=Settings(allowed_origins=origins))

    @server.tool()
    def ran() -> str:
        """Say so."""
        return "ran"

    return Door(weight(server), source)


# B19
def test_without_an_origin_a_request_is_served(weight: Weight) -> None:
    answer = door(weight).post(LIST)
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("name", ["origin", "Origin", "ORIGIN"])
def test_an_allowed_origin_is_served_and_named(weight: Weight, name: str) -> None:
    answer = door(weight, ALLOWED, source="rest_api").post(LIST, {name: ALLOWED})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == ALLOWED
    assert "origin" in answer.headers["vary"].lower()


@pytest.mark.parametrize("name", ["origin", "ORIGIN"])
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "not-an-origin",
        f"{ALLOWED},https://evil.example",
        f"{ALLOWED}, {ALLOWED}",
        f"{ALLOWED}.evil.net",
        "http://allowed.example",
        f"{ALLOWED}:8443",
        f"{ALLOWED}/",
        "",
    ],
)
def test_any_other_origin_is_refused_before_the_body_is_read(weight: Weight, name: str, origin: str) -> None:
    answer = door(weight, ALLOWED, source="rest_api").post("{not even JSON", {name: origin, "content-type": "text/x"})
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    assert "id" not in answer.json
    assert answer.error["code"] == -32600
    assert "evil" not in answer.error["message"]


def test_an_empty_allow_list_allows_no_page(weight: Weight) -> None:
    assert door(weight).post(LIST, {"origin": ALLOWED}).status == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:6274", 200),
        ("http://localhost:x", 403),
        ("http://localhost:6274.evil.net", 403),
        ("http://localhost.evil.net:80", 403),
        ("https://localhost:6274", 403),
    ],
)
def test_a_list_entry_may_leave_the_port_open(weight: Weight, origin: str, status: int) -> None:
    assert door(weight, "http://localhost:*").post(LIST, {"origin": origin}).status == status


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_refused_origin_is_refused_with_every_method(weight: Weight, method: str) -> None:
    assert door(weight, ALLOWED).send(method, "/mcp", {"origin": "https://evil.example"}).status == 403


# B42, B43
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_preflight_allows_every_header_of_both_eras(weight: Weight, path: str) -> None:
    answer = door(weight, ALLOWED).send("OPTIONS", path, PREFLIGHT)
    assert answer.status == 204
    assert answer.body == b""
    assert answer.headers["access-control-allow-origin"] == ALLOWED
    allowed = {name.strip() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert allowed >= {
        "content-type",
        "accept",
        "authorization",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
        "mcp-param-region",
    }
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "GET" in answer.headers["access-control-allow-methods"]


def test_a_preflight_reflects_nothing_but_parameter_headers(weight: Weight) -> None:
    asked = {**PREFLIGHT, "access-control-request-headers": "x-evil,mcp-param-ok,mcp-param-a b,mcp-param-"}
    allowed = door(weight, ALLOWED).send("OPTIONS", "/mcp", asked).headers["access-control-allow-headers"]
    assert "mcp-param-ok" in allowed
    assert "evil" not in allowed
    assert "a b" not in allowed


def test_a_preflight_of_another_page_is_told_nothing(weight: Weight) -> None:
    answer = door(weight, ALLOWED).send("OPTIONS", "/mcp", {**PREFLIGHT, "origin": "https://evil.example"})
    assert answer.status < 300
    assert not [name for name in answer.headers if name.startswith("access-control-")]


# B44
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (LIST, {}, 200),
        (request("initialize", initialize("2025-11-25")), {}, 200),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {}, 202),
        ("{bad", {}, 400),
        (LIST, {"content-type": "text/plain"}, 415),
        (LIST, {"accept": "application/json;q=0"}, 406),
        (LIST, {"mcp-protocol-version": MODERN}, 400),
    ],
)
def test_real_answers_expose_headers_too_refusals_included(
    weight: Weight, body: object, headers: dict[str, str], status: int
) -> None:
    answer = door(weight, ALLOWED).post(body, {"origin": ALLOWED, **headers})
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == ALLOWED
    exposed = {name.strip() for name in answer.headers["access-control-expose-headers"].split(",")}
    assert {"www-authenticate", "mcp-session-id"} <= exposed


def test_a_405_is_readable_by_a_page(weight: Weight) -> None:
    answer = door(weight, ALLOWED).send("GET", "/mcp", {"origin": ALLOWED})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (405, ALLOWED)
