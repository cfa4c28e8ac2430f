"""Requests of 2026-07-28: what every result carries, the headers that mirror the body, and the era of a request."""

import json
from typing import Annotated, Any

import pytest
from pydantic import Field

from mcp_stateless import Completion, Context, MCPServer, Settings, ToolError
from tests.http.door import (
    LEGACY,
    META_CAPABILITIES,
    META_VERSION,
    MODERN,
    Answer,
    Door,
    Weight,
    initialize,
    modern_headers,
    modern_meta,
    request,
)

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
MODERN_ONLY = ("resultType", "ttlMs", "cacheScope", SERVER_INFO)
REFERENCE = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "a"}}

METHODS: dict[str, dict[str, Any]] = {
    "tools/list": {},
    "prompts/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "text://one"},
    "tools/call": {"name": "add", "arguments": {"a": 1, "b": 2}},
    "prompts/get": {"name": "greet", "arguments": {"name": "Ada"}},
    "completion/complete": REFERENCE,
}
"""Methods of both eras, with params that fit."""

CACHEABLE = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


def sample(**settings: object) -> MCPServer:
    server = MCPServer("sample", "1.2.3", title="Sample", settings=Settings.model_validate(settings))

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool("天気")
    def weather() -> str:
        """Tell the weather."""
        return "晴れ"

    @server.tool()
    def fail(how: str) -> str:
        """Fail."""
        raise ToolError(how) if how == "told" else ValueError(how)

    @server.tool()
    def whoami(ctx: Context[None]) -> str:
        """Tell the version."""
        return ctx.protocol_version

    @server.tool()
    def at(
        region: Annotated[str | None, Field(json_schema_extra={"x-mcp-header": "Region"})] = None,
        count: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Count"})] = 0,
        dry: Annotated[bool, Field(json_schema_extra={"x-mcp-header": "Dry"})] = False,
    ) -> str:
        """Take mirrored arguments."""
        return json.dumps([region, count, dry])

    @server.prompt()
    def greet(name: str) -> str:
        """Greet."""
        return f"Hello {name}"

    @server.resource("text://one")
    def one() -> str:
        """One."""
        return "1"

    @server.resource("text://ünï/{n}")
    def item(n: str) -> str:
        """An item."""
        return n

    @server.completion()
    def complete(ref: Any, argument: Any, context: Any) -> Completion:
        """Complete."""
        return Completion(["Ada"])

    return server


@pytest.fixture
def door(weight: Weight) -> Door:
    return Door(weight(sample()))


# B115, B116
@pytest.mark.parametrize("method", [*METHODS, "server/discover"])
def test_every_modern_result_is_whole(door: Door, method: str) -> None:
    result = door.modern(method, METHODS.get(method)).result
    assert result["resultType"] == "complete"
    assert result["_meta"][SERVER_INFO]["name"] == "sample"
    if method in CACHEABLE:
        assert type(result["ttlMs"]) is int
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")
    else:
        assert not {"ttlMs", "cacheScope"} & set(result)


@pytest.mark.parametrize("how", ["told", "unexpected"])
def test_a_tools_failure_is_a_whole_result_too(door: Door, how: str) -> None:
    result = door.modern("tools/call", {"name": "fail", "arguments": {"how": how}}).result
    assert (result["resultType"], result["isError"]) == ("complete", True)


@pytest.mark.parametrize("version", [None, *LEGACY])
@pytest.mark.parametrize("method", [*METHODS, "initialize", "ping"])
def test_nothing_of_the_modern_era_is_in_a_legacy_answer(door: Door, method: str, version: str | None) -> None:
    params = {**METHODS, "initialize": initialize(version)}.get(method)
    answer = door.legacy(method, params, version=version)
    assert answer.status == 200
    assert not [word for word in MODERN_ONLY if word.encode() in answer.body]


# B118
def test_discovery_says_what_is_served(door: Door) -> None:
    answer = door.modern("server/discover", request_id="probe")
    assert answer.json["id"] == "probe"
    assert answer.result == {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
        "ttlMs": 300_000,
        "cacheScope": "public",
        "_meta": {SERVER_INFO: {"name": "sample", "version": "1.2.3", "title": "Sample"}},
    }


@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"_meta": {META_CAPABILITIES: {}}}])
def test_discovery_without_its_meta_is_invalid_params_with_the_id(door: Door, params: dict[str, Any] | None) -> None:
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "server/discover"}
    answer = door.post(request("server/discover", params, "probe"), headers)
    assert (answer.status, answer.json["id"], answer.error["code"]) == (400, "probe", -32602)
    assert META_VERSION in answer.error["message"]


def test_discovery_without_any_version_is_a_legacy_request_for_an_unknown_method(door: Door) -> None:
    answer = door.post(request("server/discover", None, "probe"))
    assert (answer.status, answer.json["id"], answer.error["code"]) == (200, "probe", -32601)


# B118, B119
def test_an_unserved_version_is_told_what_is_served_and_that_then_works(door: Door) -> None:
    meta = {META_VERSION: "2030-01-01", META_CAPABILITIES: {}}
    headers = {"mcp-protocol-version": "2030-01-01", "mcp-method": "server/discover"}
    answer = door.post(request("server/discover", {"_meta": meta}, 0), headers)
    assert (answer.status, answer.json["id"], answer.error["code"]) == (400, 0, -32022)
    assert answer.error["data"] == {"supported": [MODERN], "requested": "2030-01-01"}
    for version in answer.error["data"]["supported"]:
        params = {"_meta": {META_VERSION: version, META_CAPABILITIES: {}}}
        assert (
            door.post(
                request("tools/list", params), {**headers, "mcp-protocol-version": version, "mcp-method": "tools/list"}
            ).status
            == 200
        )


# B117: declared in the header, declared in `_meta`, and what comes of it
ERAS: list[tuple[object, object, int, object]] = [
    (MODERN, MODERN, 200, "modern"),
    (MODERN, None, 400, -32602),
    (None, MODERN, 400, -32020),
    (None, None, 200, "legacy"),
    ("2025-11-25", None, 200, "legacy"),
    ("2025-11-25", MODERN, 400, -32020),
    (MODERN, "2025-11-25", 400, -32020),
    (MODERN, "2030-01-01", 400, -32020),
    ("2030-01-01", "2030-01-01", 400, -32022),
    ("2025-11-25", "2025-11-25", 400, -32022),
    ("2025-06-18", "2025-06-18", 400, -32022),
    (None, "2025-06-18", 400, -32020),
    ("2030-01-01", None, 400, -32022),
    (MODERN, 5, 400, -32602),
    (MODERN, ["x"], 400, -32602),
    (f"{MODERN},{MODERN}", MODERN, 400, -32020),
    (f" {MODERN} ", MODERN, 200, "modern"),
    (MODERN.upper(), MODERN, 200, "modern"),
]


@pytest.mark.parametrize(("header", "meta", "status", "outcome"), ERAS)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "resources/read"])
def test_the_era_is_what_a_request_declares_and_never_mixed(
    door: Door, method: str, header: str | None, meta: object, status: int, outcome: object
) -> None:
    params = dict(METHODS[method])
    if meta is not None:
        params["_meta"] = {META_VERSION: meta, META_CAPABILITIES: {}}
    answer = door.post(request(method, params, "x"), {**modern_headers(method, params), "mcp-protocol-version": header})
    assert (answer.status, answer.json["id"]) == (status, "x")
    if status == 200:
        assert ("resultType" in answer.result) is (outcome == "modern")
        assert (SERVER_INFO in answer.result.get("_meta", {})) is (outcome == "modern")
        assert (("ttlMs" in answer.result) is (outcome == "modern")) or method == "tools/call"
    else:
        assert answer.error["code"] == outcome


@pytest.mark.parametrize("meta", [None, [], "x", 5])
def test_a_meta_that_is_no_object_declares_nothing(door: Door, meta: object) -> None:
    answer = door.post(request("tools/list", {"_meta": meta}), modern_headers("tools/list", {}))
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.parametrize("capabilities", [None, [], "x", 5])
def test_capabilities_are_an_object(door: Door, capabilities: object) -> None:
    answer = door.modern("tools/list", meta={META_CAPABILITIES: capabilities})
    assert (answer.status, answer.error["code"]) == (400, -32602)


def test_who_the_client_says_it_is_does_not_matter(door: Door) -> None:
    for client in (None, {}, "odd", {"name": "x", "version": "1"}):
        assert door.modern("tools/list", meta={"io.modelcontextprotocol/clientInfo": client}).status == 200


# B120
def named(door: Door, header: str | None, name: str = "add") -> Answer:
    params = {"name": name, "arguments": {"a": 1, "b": 2} if name == "add" else {}}
    return door.modern("tools/call", params, headers={"mcp-name": header})


@pytest.mark.parametrize("header", ["add", " add ", "=?base64?YWRk?=", " =?base64?YWRk?=\t"])
def test_a_name_header_that_says_the_same_is_taken(door: Door, header: str) -> None:
    assert named(door, header).status == 200


@pytest.mark.parametrize(
    "header",
    [
        "ADD",
        "=?BASE64?YWRk?=",
        "=?base64?%%%?=",
        None,
        "",
        "sub",
        "add,add",
        "=?base64?YWRk",
        "=?base64?YWRk?",
        "base64?YWRk?=",
        "=?base64?YWR?=",
        "=?base64?YWRk=?=",
        "=?base64?YW Rk?=",
        "=?base64?/w==?=",
        "=?base64??=",
        "=?base64?=",
    ],
)
def test_any_other_name_header_is_a_mismatch(door: Door, header: str | None) -> None:
    answer = named(door, header)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32020, 1)


@pytest.mark.parametrize("header", ["tools/List", "tools/list", None, "", "tools/call, tools/call"])
def test_the_method_header_says_the_method(door: Door, header: str | None) -> None:
    answer = door.modern("tools/call", METHODS["tools/call"], headers={"mcp-method": header})
    assert (answer.status, answer.error["code"]) == (400, -32020)


def test_names_outside_ascii_travel_encoded(door: Door) -> None:
    assert named(door, "=?base64?5aSp5rCX?=", "天気").text == "晴れ"
    assert named(door, "=?base64?5aSp5rCX=?=", "天気").status == 400


def test_header_names_have_no_case(weight: Weight) -> None:
    door = Door(weight(sample()), "rest_api")
    params = {**METHODS["tools/call"], "_meta": modern_meta()}
    headers = {"MCP-PROTOCOL-VERSION": MODERN, "mCp-MeThOd": "tools/call", "Mcp-Name": "add"}
    assert door.post(request("tools/call", params), headers).status == 200


@pytest.mark.parametrize(
    ("method", "key", "value", "status"),
    [
        ("resources/read", "uri", "text://one", 200),
        ("resources/read", "uri", "text://ünï/5", 200),
        ("prompts/get", "name", "greet", 200),
        ("tasks/get", "taskId", "unknown", 404),
    ],
)
def test_other_methods_mirror_their_own_param(door: Door, method: str, key: str, value: str, status: int) -> None:
    params = {"arguments": {"name": "x"}, key: value}
    assert door.modern(method, params).status == status
    wrong = door.modern(method, params, headers={"mcp-name": "other"})
    assert (wrong.status, wrong.error["code"]) == (400, -32020)


# B122
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": None}, {}),
        ({"region": "eu"}, {"mcp-param-region": "eu"}),
        ({"region": "eu"}, {"MCP-Param-Region": " eu "}),
        ({"region": "a\nb"}, {"mcp-param-region": "=?base64?YQpi?="}),
        ({"region": "ünï"}, {"mcp-param-region": "=?base64?w7xuw68=?="}),
        ({"count": 42}, {"mcp-param-count": "42"}),
        ({"count": 42}, {"mcp-param-count": "42.0"}),
        ({"count": 9007199254740993}, {"mcp-param-count": "9007199254740993"}),
        ({"dry": True}, {"mcp-param-dry": "true"}),
        ({"dry": False}, {"mcp-param-dry": "false"}),
    ],
)
def test_a_parameter_header_that_says_the_same_is_taken(
    weight: Weight, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    door = Door(weight(sample()), "rest_api")
    answer = door.modern("tools/call", {"name": "at", "arguments": arguments}, headers=headers)
    assert answer.status == 200
    assert answer.result["isError"] is False


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"mcp-param-region": "EU"}),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?%%?="}),
        ({"region": None}, {"mcp-param-region": "null"}),
        ({}, {"mcp-param-region": "eu"}),
        ({"count": 42}, {"mcp-param-count": "43"}),
        ({"count": 42}, {"mcp-param-count": "forty-two"}),
        ({"count": 42}, {"mcp-param-count": "4_2"}),
        ({"count": 42}, {"mcp-param-count": ""}),
        ({"dry": True}, {"mcp-param-dry": "True"}),
        ({"dry": True}, {"mcp-param-dry": "1"}),
        ({"dry": True}, {}),
    ],
)
def test_any_other_parameter_header_is_a_mismatch(
    door: Door, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    answer = door.modern("tools/call", {"name": "at", "arguments": arguments}, headers=headers)
    assert (answer.status, answer.error["code"]) == (400, -32020)


def test_a_parameter_header_nobody_declared_does_not_matter(door: Door) -> None:
    assert door.modern("tools/call", METHODS["tools/call"], headers={"mcp-param-other": "x"}).status == 200


def test_legacy_requests_are_not_held_to_mirrored_headers(door: Door) -> None:
    odd = {"mcp-method": "no/such", "mcp-name": "=?base64?%%?=", "mcp-param-region": "x"}
    assert door.call("at", {"region": "eu"}, headers=odd).result["isError"] is False


# B123
@pytest.mark.parametrize("headers", [{}, {"mcp-method": "notifications/initialized"}, {"mcp-method": "other"}])
@pytest.mark.parametrize("params", [{}, {"_meta": {META_VERSION: MODERN, META_CAPABILITIES: {}}}])
def test_a_modern_notification_needs_no_other_header(
    door: Door, headers: dict[str, str], params: dict[str, Any]
) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": params}
    answer = door.post(message, {"mcp-protocol-version": MODERN, **headers})
    assert (answer.status, answer.body) == (202, b"")
    assert "content-type" not in answer.headers


# B124
GONE = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list")


@pytest.mark.parametrize("method", [*GONE, "tasks/result", "no/such", "tools", "TOOLS/LIST", "__init__"])
def test_methods_that_are_not_there_are_404(door: Door, method: str) -> None:
    answer = door.modern(method)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (404, -32601, 1)


@pytest.mark.parametrize("method", ["no/such", "server/discover", "subscriptions/listen", "resources/subscribe"])
def test_in_the_legacy_eras_they_are_200(door: Door, method: str) -> None:
    answer = door.legacy(method)
    assert (answer.status, answer.error["code"]) == (200, -32601)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nope"}),
        ("prompts/get", {"name": "nope"}),
        ("prompts/get", {"name": "greet"}),
        ("resources/read", {"uri": "none://such"}),
        ("tools/list", {"cursor": "bogus"}),
        ("completion/complete", {}),
    ],
)
def test_errors_of_the_handlers_are_200(door: Door, method: str, params: dict[str, Any]) -> None:
    answer = door.modern(method, params)
    assert (answer.status, answer.error["code"]) == (200, -32602)


@pytest.mark.parametrize("level", ["loud", 5, [], "INFO", ""])
def test_an_unknown_log_level_is_invalid_params(door: Door, level: object) -> None:
    answer = door.modern("tools/list", meta={"io.modelcontextprotocol/logLevel": level})
    assert answer.error["code"] == -32602


def test_session_and_event_ids_are_ignored(door: Door) -> None:
    headers = {"mcp-session-id": "x", "last-event-id": "5"}
    assert door.modern("tools/list", headers=headers).status == 200


# B125
@pytest.mark.parametrize("method", CACHEABLE)
def test_what_a_caller_with_a_credential_gets_is_private(door: Door, method: str) -> None:
    params = METHODS.get(method)
    assert door.modern(method, params).result["cacheScope"] == "public"
    answer = door.modern(method, params, headers={"authorization": "Bearer alice"})
    assert answer.result["cacheScope"] == "private"
    assert answer.headers["cache-control"] == "no-store"


def test_how_long_an_answer_may_be_kept_is_a_setting(weight: Weight) -> None:
    door = Door(weight(sample(list_ttl_ms=5, resource_ttl_ms=7)))
    assert door.modern("tools/list").result["ttlMs"] == 5
    assert door.modern("server/discover").result["ttlMs"] == 5
    assert door.modern("resources/read", {"uri": "text://one"}).result["ttlMs"] == 7


# A26
@pytest.mark.parametrize("value", [[1, 2], "text", 5, None, True, {"a": 1}])
def test_structured_content_is_any_value_for_a_modern_client_and_an_object_before(
    weight: Weight, value: object
) -> None:
    server = MCPServer("sample")

    @server.tool()
    def give() -> list[int] | str | int | bool | dict[str, int] | None:
        """Give."""
        return value  # type: ignore[return-value]  # one of them

    door = Door(weight(server))
    modern = door.modern("tools/call", {"name": "give", "arguments": {}}).result
    assert modern["structuredContent"] == value
    for version in ("2025-06-18", "2025-11-25"):
        legacy = door.call("give", version=version).result
        assert legacy["structuredContent"] == {"result": value}
        assert legacy["content"] == modern["content"]


# B24 of the protocol: subscriptions
def test_listening_is_acknowledged_and_ends(door: Door) -> None:
    params = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["text://one"]}}
    acknowledged, end = door.modern("subscriptions/listen", params, request_id="s1").stream
    tag = {"io.modelcontextprotocol/subscriptionId": "s1"}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"_meta": tag, "notifications": {}}
    assert end["id"] == "s1"
    assert end["result"]["resultType"] == "complete"
    assert end["result"]["_meta"].items() >= tag.items()


def test_a_caller_that_takes_no_stream_cannot_listen(door: Door) -> None:
    answer = door.modern("subscriptions/listen", headers={"accept": "application/json"})
    assert (answer.status, answer.error["code"]) == (404, -32601)


def test_listening_with_an_integer_id_keeps_its_type(door: Door) -> None:
    acknowledged, end = door.modern("subscriptions/listen", {"notifications": {}}, request_id=0).stream
    assert acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 0
    assert type(end["id"]) is int
