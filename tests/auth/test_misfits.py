"""What the author is told of a server that refuses every call, and what no author can hide."""

import pytest

from mcp_stateless import MCPServer, Settings
from mcp_stateless.principal import Principal

KEY = "a signing key of thirty-two bytes"


def test_scopes_where_no_caller_can_have_any_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    server = MCPServer("sample", settings=Settings())
    server.tool(name="guarded", scopes=["write"])(lambda: None)
    server.lambda_handler()
    assert "guarded needs scopes" in caplog.text


def test_the_tool_that_ends_long_calls_cannot_be_hidden() -> None:
    settings = Settings.model_validate({"polling": "memory", "signing_keys": (KEY,)})
    server = MCPServer("sample", settings=settings, visible=lambda principal, definition: False)
    server.tool(name="long", long_running=True)(lambda: None)
    assert list(server.registry.seen_by(Principal("issuer", "ann")).tools) == ["check_call"]
