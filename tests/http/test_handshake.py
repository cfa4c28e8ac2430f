"""The legacy handshake and everything a client may do before, without or after it."""

import pytest

from mcp_stateless import MCPServer, Settings
from tests.http.door import LEGACY, META_VERSION, MODERN, Door, Weight, initialize, request

EVERY_SOURCE = pytest.mark.parametrize("source", ["http_api", "rest_api", "function_url", "alb"])


def sample(**settings: object) -> MCPServer:
    server = MCPServer("sample", "1.2.3", instructions="Add.", settings=Settings.model_validate(settings))

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


# B23, B123, A19
@EVERY_SOURCE
@pytest.mark.parametrize("version", [None, *LEGACY, MODERN])
def test_a_notification_is_accepted_without_a_body_and_without_a_type(
    weight: Weight, source: str, version: str | None
) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = Door(weight(sample()), source).post(message, {"mcp-protocol-version": version})
    assert (answer.status, answer.body) == (202, b"")
    assert "content-type" not in answer.headers


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "notifications/unheard-of"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add"}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": "odd"},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}},
    ],
)
def test_whatever_wants_no_answer_is_accepted_and_dropped(weight: Weight, message: object) -> None:
    answer = Door(weight(sample())).post(message)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("version", ["1999-01-01", "foobar", ""])
def test_a_notification_at_an_unknown_version_is_refused(weight: Weight, version: str) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = Door(weight(sample())).post(message, {"mcp-protocol-version": version})
    assert answer.status == 400
    assert "2025-11-25" in answer.error["message"]


# B25
def test_a_session_is_never_minted_and_a_foreign_one_is_ignored(weight: Weight) -> None:
    door = Door(weight(sample()))
    for answer in (
        door.legacy("tools/list", headers={"mcp-session-id": "made-up"}),
        door.legacy("initialize", initialize("2025-11-25"), version=None),
        door.modern("tools/list", headers={"mcp-session-id": "made-up", "last-event-id": "7"}),
    ):
        assert answer.status == 200
        assert "mcp-session-id" not in answer.headers


# B26
def test_any_request_may_be_the_first_one(weight: Weight) -> None:
    door = Door(weight(sample()))
    assert door.call("add", {"a": 1, "b": 2}, version="2025-06-18").text == "3"
    assert door.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert door.legacy("initialize", initialize("2025-06-18"), version=None).status == 200


# B27
@pytest.mark.parametrize("version", ["2099-01-01", MODERN, "1.0", "", None, 5, ["2025-11-25"]])
@pytest.mark.parametrize("header", [None, "2099-01-01", MODERN, "2025-06-18", "nonsense"])
def test_initialize_negotiates_in_the_body_whatever_the_header_says(
    weight: Weight, header: str | None, version: object
) -> None:
    answer = Door(weight(sample())).legacy("initialize", initialize(version), version=header, request_id=0)
    assert (answer.status, answer.json["id"]) == (200, 0)
    assert answer.result["protocolVersion"] == "2025-11-25"


# B28, A18
@pytest.mark.parametrize("version", LEGACY)
def test_a_served_revision_is_echoed(weight: Weight, version: str) -> None:
    answer = Door(weight(sample())).legacy("initialize", initialize(version), version=None)
    assert answer.result == {
        "protocolVersion": version,
        "serverInfo": {"name": "sample", "version": "1.2.3"},
        "capabilities": {"tools": {}},
        "instructions": "Add.",
    }


def test_the_fallback_is_the_newest_served_legacy_revision(weight: Weight) -> None:
    door = Door(weight(sample(revisions=("2025-03-26", "2025-06-18", MODERN))))
    for asked in ("2025-11-25", MODERN, "2024-11-05"):
        answer = door.legacy("initialize", initialize(asked), version=None)
        assert answer.result["protocolVersion"] == "2025-06-18"


def test_a_modern_server_names_its_versions_to_a_handshake(weight: Weight) -> None:
    answer = Door(weight(sample(revisions=(MODERN,)))).legacy("initialize", initialize("2025-11-25"), version=None)
    assert (answer.status, answer.error["code"]) == (400, -32022)
    assert answer.error["data"] == {"supported": [MODERN], "requested": "2025-11-25"}


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_a_modern_server_refuses_other_legacy_requests(weight: Weight, version: str | None) -> None:
    answer = Door(weight(sample(revisions=(MODERN,)))).legacy("tools/list", version=version)
    assert answer.status == 400
    assert MODERN in answer.error["message"]


def test_a_legacy_server_refuses_modern_requests_and_says_what_it_speaks(weight: Weight) -> None:
    answer = Door(weight(sample(revisions=LEGACY))).modern("tools/list")
    assert answer.status == 400
    assert "2025-11-25" in answer.error["message"]


# B29
@pytest.mark.parametrize("version", [None, *LEGACY])
def test_a_later_request_may_name_a_legacy_revision_or_none(weight: Weight, version: str | None) -> None:
    assert Door(weight(sample())).legacy("tools/list", version=version).status == 200


@pytest.mark.parametrize("version", ["1999-01-01", "foobar", "", "2025-06-18,2025-06-18", "2025-06-18, 2025-11-25"])
def test_an_unknown_version_is_refused_with_the_served_ones(weight: Weight, version: str) -> None:
    answer = Door(weight(sample())).legacy("tools/list", version=version, request_id="x")
    assert answer.status == 400
    assert answer.json["id"] == "x"
    assert MODERN in answer.error["message"]


def test_ping_is_answered_in_the_legacy_eras_and_gone_since(weight: Weight) -> None:
    door = Door(weight(sample()))
    for version in (None, *LEGACY):
        assert door.legacy("ping", version=version).result == {}
    assert door.modern("ping").status == 404


def test_a_modern_meta_wins_over_the_method_initialize(weight: Weight) -> None:
    params = {**initialize(MODERN), "_meta": {META_VERSION: MODERN, "io.modelcontextprotocol/clientCapabilities": {}}}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "initialize"}
    answer = Door(weight(sample())).post(request("initialize", params), headers)
    assert (answer.status, answer.error["code"]) == (404, -32601)


@pytest.mark.parametrize(
    ("level", "offered", "code"), [("info", True, None), ("loud", True, -32602), ("info", False, -32601)]
)
def test_the_log_level_is_accepted_where_log_messages_are_offered(
    weight: Weight, level: str, offered: bool, code: int | None
) -> None:
    door = Door(weight(sample(log_messages="info" if offered else "off")))
    answer = door.legacy("logging/setLevel", {"level": level})
    assert answer.status == 200
    assert answer.json.get("error", {}).get("code") == code
