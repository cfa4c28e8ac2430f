"""The server as an OAuth protected resource: challenges, metadata, and what is answered before anybody is asked."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from mcp_stateless import MCPServer, Settings
from mcp_stateless.testing.events import ALB_DOMAIN, API_DOMAIN, URL_DOMAIN
from tests.auth.callers import asked, identified, telling
from tests.auth.issuer import AUDIENCE, ISSUER, Issuer, bearer
from tests.http.door import Answer, Door, initialize, request

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
PLACES: Final = (f"{WELL_KNOWN}/mcp", WELL_KNOWN, f"/mcp{WELL_KNOWN}")
ORIGIN: Final[dict[str, str | None]] = {"origin": "http://localhost:6274"}


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(params=["endpoint", "app"])
def weight(request: pytest.FixtureRequest) -> Any:
    return (lambda s: s.lambda_handler()) if request.param == "endpoint" else (lambda s: s.lambda_handler(s.app()))


def metadata(door: Door, path: str) -> dict[str, Any]:
    answer = door.send("GET", path)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json
    return found


# T10, rule 7 of HOSTS.md
def test_the_walk_from_the_challenge_to_a_call(issuer: Issuer, weight: Any) -> None:
    door = Door(weight(telling(issuer.server({"required_scopes": ("use",)}))))
    challenged = door.post(request("initialize", initialize("2025-11-25")))
    assert challenged.status == 401
    place = f"https://{API_DOMAIN}{WELL_KNOWN}/mcp"
    assert challenged.headers["www-authenticate"] == f'Bearer scope="use", resource_metadata="{place}"'
    documents = [metadata(door, path) for path in PLACES]
    assert (
        documents
        == [
            {
                "resource": AUDIENCE,
                "authorization_servers": [ISSUER],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["use"],
            }
        ]
        * 3
    )
    expired = door.call("who", headers=bearer(issuer.token(exp=1)))
    assert expired.status == 401
    assert expired.headers["www-authenticate"] == (
        f'Bearer error="invalid_token", scope="use", resource_metadata="{place}"'
    )
    for accept in ("text/event-stream", "*/*", None):
        assert door.send("GET", headers={"accept": accept} if accept else {}).status == 405
    assert asked(door.call("who", headers=bearer(issuer.token())))["subject"] == "alice"


# T10: as LangChain calls, twenty times at once with equal ids.
def test_parallel_conversations_with_equal_ids_do_not_mix(issuer: Issuer) -> None:
    door = Door(telling(issuer.server()).lambda_handler())

    def converse(number: int) -> str:
        headers = bearer(issuer.token(sub=f"user {number}"))
        assert door.post(request("initialize", initialize("2025-11-25"), 0), headers).status == 200
        assert door.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers).status == 202
        called = door.call("who", headers=headers, request_id=1)
        assert door.legacy("tools/list", headers=headers, request_id=2).status == 200
        return str(asked(called)["subject"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(converse, range(20))) == [f"user {number}" for number in range(20)]


# B134: with a stage or a base path in front, what the challenge points to is below the endpoint.
BEHIND: Final[list[tuple[str, dict[str, Any], dict[str, Any], str]]] = [
    ("http_api", {"stage": "prod"}, {}, f"https://{API_DOMAIN}/prod/mcp"),
    ("rest_api", {"stage": "prod"}, {}, f"https://{API_DOMAIN}/prod/mcp"),
    (
        "rest_api",
        {"domain": "tools.example.com", "base_path": "/v1"},
        {"base_path": "/v1"},
        "https://tools.example.com/v1/mcp",
    ),
    ("http_api", {"domain": "tools.example.com"}, {}, "https://tools.example.com/mcp"),
    ("function_url", {}, {}, f"https://{URL_DOMAIN}/mcp"),
    ("alb", {}, {"public_url": "https://tools.example.com/mcp"}, "https://tools.example.com/mcp"),
    ("http_api", {}, {"public_url": "https://Tools.example.com/team/mcp"}, "https://Tools.example.com/team/mcp"),
    ("http_api", {"stage": "prod"}, {"public_url": "https://tools.example.com/mcp/"}, "https://tools.example.com/mcp/"),
    ("http_api", {}, {"public_url": "https://tools.example.com/team/mcp/"}, "https://tools.example.com/team/mcp/"),
    ("function_url", {}, {"path": "/", "health_path": "/health"}, f"https://{URL_DOMAIN}"),
]


@pytest.mark.parametrize(("source", "event", "settings", "url"), BEHIND)
def test_the_resource_is_the_public_url_to_the_last_character(
    issuer: Issuer, weight: Any, source: str, event: dict[str, Any], settings: dict[str, Any], url: str
) -> None:
    server = telling(issuer.server(settings))
    door = Door(weight(server), source, **event)
    path = server.settings.path or "/"
    challenge = door.post(request("tools/list"), path=path).headers["www-authenticate"]
    place = challenge.removeprefix('Bearer resource_metadata="').removesuffix('"')
    parts, shown = urlsplit(url), url.rstrip("/")
    at_root = f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"
    assert place == (at_root if parts.path.rstrip("/") == server.settings.path else f"{shown}{WELL_KNOWN}")
    front = shown.removesuffix(server.settings.path)
    # What the caller finds there, by the path as the application knows it.
    assert metadata(door, place.removeprefix(front))["resource"] == url
    for other in dict.fromkeys(
        (f"{WELL_KNOWN}{server.settings.path}", WELL_KNOWN, f"{server.settings.path}{WELL_KNOWN}")
    ):
        assert metadata(door, other)["resource"] == url
        assert metadata(door, f"{other}/")["resource"] == url
    good, bad = bearer(issuer.token(aud=url)), bearer(issuer.token(aud=f"{url}x"))
    assert door.post(request("tools/list"), good, path=path).status == 200
    assert door.post(request("tools/list"), bad, path=path).status == 401


def test_behind_a_stage_the_challenge_points_below_the_endpoint(issuer: Issuer) -> None:
    door = Door(telling(issuer.server()).lambda_handler(), "http_api", stage="prod")
    place = f"https://{API_DOMAIN}/prod/mcp{WELL_KNOWN}"
    assert door.call("who").headers["www-authenticate"] == f'Bearer resource_metadata="{place}"'


@pytest.mark.parametrize("prefix", ["/numbers", "/a/b"])
def test_a_router_in_an_app_of_ones_own_is_a_resource_of_its_own(issuer: Issuer, prefix: str) -> None:
    server = telling(issuer.server())
    app = FastAPI()
    app.include_router(server.router(), prefix=prefix)
    door = Door(server.lambda_handler(app))
    url = f"https://{API_DOMAIN}{prefix}/mcp"
    challenged = door.post(request("tools/list"), path=f"{prefix}/mcp")
    assert challenged.headers["www-authenticate"] == f'Bearer resource_metadata="{url}{WELL_KNOWN}"'
    assert metadata(door, f"{prefix}/mcp{WELL_KNOWN}")["resource"] == url
    assert door.post(request("tools/list"), bearer(issuer.token(aud=url)), path=f"{prefix}/mcp").status == 200
    assert door.post(request("tools/list"), bearer(issuer.token()), path=f"{prefix}/mcp").status == 401


# B137
FORGED: Final[dict[str, str | None]] = {
    "host": "evil.example",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "http",
    "x-forwarded-prefix": "/evil",
    "x-forwarded-port": "80",
    "forwarded": "host=evil.example;proto=http",
    "x-original-url": "https://evil.example/mcp",
}


@pytest.mark.parametrize("source", ["http_api", "function_url", "alb"])
def test_headers_do_not_say_under_which_url_the_endpoint_is(issuer: Issuer, weight: Any, source: str) -> None:
    settings = {"public_url": "https://tools.example.com/mcp"} if source == "alb" else {}
    door = Door(weight(telling(issuer.server(settings))), source)
    for answer in (door.call("who"), door.call("who", headers=FORGED)):
        assert "evil" not in answer.headers["www-authenticate"]
        assert 'resource_metadata="https://' in answer.headers["www-authenticate"]
    theirs = bearer(issuer.token(aud="https://evil.example/mcp"))
    assert door.call("who", headers={**FORGED, **theirs}).status == 401
    plain = door.send("GET", WELL_KNOWN)
    assert door.send("GET", WELL_KNOWN, {k: v for k, v in FORGED.items() if v}).body == plain.body


# The public URL is needed where no event tells it: nothing is guessed, and nothing breaks.
@pytest.mark.parametrize("settings", [{}, {"audience": "mcp"}])
def test_without_a_public_url_a_load_balancer_is_answered_500(
    issuer: Issuer, weight: Any, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    door = Door(weight(telling(issuer.server(settings))), "alb", domain=ALB_DOMAIN)
    for answer in (door.call("who"), door.send("GET", WELL_KNOWN)):
        assert answer.status == 500
        assert answer.json["error"] == {"code": -32603, "message": "Internal error"}
    assert "MCP_PUBLIC_URL" in caplog.text


# D7
def test_a_missing_scope_is_a_403_that_names_all_scopes_of_the_operation(issuer: Issuer, weight: Any) -> None:
    door = Door(weight(telling(issuer.server({"required_scopes": ("use",)}))))
    place = f"https://{API_DOMAIN}{WELL_KNOWN}/mcp"
    headers = bearer(issuer.token(scope="use write"))
    for answer in (
        door.call("change", headers=headers),
        door.modern("tools/call", {"name": "change"}, headers=headers),
        door.call("change", {"no": "such argument"}, headers=headers),
    ):
        assert answer.status == 403
        assert answer.headers["www-authenticate"] == (
            f'Bearer error="insufficient_scope", scope="use admin write", resource_metadata="{place}"'
        )
        assert answer.json["error"]["message"] == "Forbidden: the token lacks a scope"
    assert door.call("change", headers=bearer(issuer.token(scope="use write admin"))).text == "changed"
    assert door.call("who", headers=headers).status == 200


def test_a_scope_that_every_request_needs_is_missed_at_once(issuer: Issuer) -> None:
    door = Door(telling(issuer.server({"required_scopes": ("use", "more")})).lambda_handler())
    answer = door.legacy("tools/list", headers=bearer(issuer.token(scope="use")))
    assert answer.status == 403
    assert 'error="insufficient_scope", scope="use more"' in answer.headers["www-authenticate"]


def test_scopes_may_have_a_hierarchy(issuer: Issuer) -> None:
    def grants(granted: frozenset[str], needed: str) -> bool:
        return needed in granted or "root" in granted

    door = Door(telling(issuer.server({"required_scopes": ("use",)}, grants=grants)).lambda_handler())
    assert door.call("change", headers=bearer(issuer.token(scope="root"))).text == "changed"
    assert door.call("change", headers=bearer(issuer.token(scope="use"))).status == 403


def test_a_batch_of_which_one_call_lacks_a_scope_runs_none_of_them(issuer: Issuer) -> None:
    server, ran = telling(issuer.server()), []

    @server.tool()
    def note() -> str:
        """Note that it ran."""
        ran.append(1)
        return "noted"

    door = Door(server.lambda_handler())
    calls = [
        request("tools/call", {"name": name, "arguments": {}}, number) for number, name in enumerate(("note", "change"))
    ]
    headers: dict[str, str | None] = {"mcp-protocol-version": "2025-03-26", **bearer(issuer.token())}
    assert door.post(calls, headers).status == 403
    assert ran == []
    assert door.post(calls[:1], headers).status == 200
    assert ran == [1]


def test_scopes_supported_are_what_clients_begin_with(issuer: Issuer) -> None:
    door = Door(
        telling(issuer.server({"required_scopes": ("use",), "scopes_supported": ("use", "write")})).lambda_handler()
    )
    assert metadata(door, WELL_KNOWN)["scopes_supported"] == ["use", "write"]
    assert "scopes_supported" not in metadata(Door(telling(issuer.server()).lambda_handler()), WELL_KNOWN)


# B12, B43, B138
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD"])
@pytest.mark.parametrize("token", ["none", "bad", "good"])
def test_methods_are_refused_before_callers(issuer: Issuer, weight: Any, method: str, token: str) -> None:
    sent = {"bad": "Bearer x", "good": f"Bearer {issuer.token()}"}
    headers = {"authorization": sent[token]} if token in sent else {}
    for more in ({}, {"mcp-session-id": "made-up"}, {"accept": "text/event-stream"}):
        answer = Door(weight(telling(issuer.server()))).send(method, "/mcp", {**headers, **more})
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]
        assert "www-authenticate" not in answer.headers


# B43
def test_a_preflight_needs_no_token(issuer: Issuer, weight: Any) -> None:
    door = Door(weight(telling(issuer.server())))
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, mcp-method"}
    answer = door.send("OPTIONS", "/mcp", {"origin": "http://localhost:6274", **asks})
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert "authorization" in answer.headers["access-control-allow-headers"]
    refused = door.send("OPTIONS", "/mcp", {"origin": "https://evil.example", **asks})
    assert "access-control-allow-origin" not in refused.headers


# B44
def test_a_page_can_read_the_challenge_and_the_metadata(issuer: Issuer, weight: Any) -> None:
    door = Door(weight(telling(issuer.server())))
    answers = [
        door.call("who", headers=ORIGIN),
        door.call("change", headers={**ORIGIN, **bearer(issuer.token())}),
        *(door.send("GET", place, {"origin": "http://localhost:6274"}) for place in PLACES),
        *(door.send("OPTIONS", place, {"origin": "http://localhost:6274"}) for place in PLACES),
    ]
    assert [answer.status for answer in answers] == [401, 403, *[200] * 3, *[204] * 3]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == "http://localhost:6274"
        assert "www-authenticate" in answer.headers["access-control-expose-headers"]


def test_a_page_that_may_not_call_is_refused_before_its_token_is_read(issuer: Issuer) -> None:
    door = Door(telling(issuer.server()).lambda_handler())
    answer = door.call("who", headers={"origin": "https://evil.example", **bearer(issuer.token())})
    assert answer.status == 403
    assert issuer.asked == []


@pytest.mark.parametrize("identity", ["none", "iam", "lambda_authorizer", "cognito_authorizer"])
def test_where_clients_do_not_log_in_themselves_there_is_no_metadata(identity: str, weight: Any) -> None:
    door = Door(weight(identified(identity)))
    for place in PLACES:
        assert door.send("GET", place).status == 404
    assert "www-authenticate" not in door.call("who").headers


def test_a_server_behind_a_jwt_authorizer_tells_clients_where_to_log_in(weight: Any) -> None:
    server = identified("jwt_authorizer", authorization_servers=(ISSUER,))
    door = Door(weight(server))
    assert [metadata(door, place)["resource"] for place in PLACES] == [AUDIENCE] * 3
    assert door.call("who").status == 401
    assert 'resource_metadata="' in door.call("who").headers["www-authenticate"]


# B15
@pytest.mark.parametrize("source", ["http_api", "rest_api", "function_url", "alb"])
def test_health_and_metadata_need_no_token(issuer: Issuer, weight: Any, source: str) -> None:
    door = Door(weight(telling(issuer.server({"public_url": AUDIENCE}))), source)
    for path in ("/health", *PLACES):
        assert door.send("GET", path).status == 200
        assert door.send("HEAD", path).status == 200
        assert door.send("POST", path).status == 405
    assert issuer.asked == []


# B136
def test_no_token_a_bad_one_and_a_weak_one_are_told_apart(issuer: Issuer) -> None:
    door = Door(telling(issuer.server()).lambda_handler())
    answers: list[Answer] = [
        door.call("change"),
        door.call("change", headers=bearer("bad")),
        door.call("change", headers=bearer(issuer.token())),
    ]
    assert [answer.status for answer in answers] == [401, 401, 403]


def test_an_audience_can_be_chosen(issuer: Issuer) -> None:
    door = Door(telling(issuer.server({"audience": "mcp"})).lambda_handler())
    assert door.call("who", headers=bearer(issuer.token(aud="mcp"))).status == 200
    assert door.call("who", headers=bearer(issuer.token())).status == 401
    assert metadata(door, WELL_KNOWN)["resource"] == AUDIENCE


@pytest.mark.parametrize("url", ["tools.example.com/mcp", "/mcp", "ftp://tools.example.com"])
def test_a_public_url_that_is_none_fails_at_the_start(url: str) -> None:
    with pytest.raises(ValueError, match="whole URL"):
        MCPServer("s", "1", settings=Settings(public_url=url))
