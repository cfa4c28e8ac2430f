"""Sealed state is signed and can be read; with a setting it is encrypted as well."""

import base64
import sys

import pytest

from mcp_stateless import ConfigurationError, Context, MCPServer, Settings
from tests.http.caller import KEY, Caller, Name, accept, state
from tests.http.door import Weight

OTHER_KEY = "another signing key of thirty-two bytes"


async def remembering(ctx: Context) -> str:
    found = await ctx.step("look up", lambda: "the-recorded-value")
    answer = await ctx.elicit("Who?", Name, key="who")
    return f"{found} for {answer.data.name}" if answer.action == "accept" else "nobody"


def build(**settings: object) -> MCPServer:
    server = MCPServer("sample", "1", settings=Settings.model_validate({"signing_keys": (KEY,), **settings}))
    server.tool(name="tool")(remembering)
    return server


def raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_what_is_recorded_can_be_read_by_the_client(weight: Weight) -> None:
    assert b"the-recorded-value" in raw(state(Caller(weight, build).start()))


def test_an_encrypted_state_cannot_be_read_and_opens_in_any_environment(weight: Weight) -> None:
    caller = Caller(weight, lambda: build(encrypt_state=True))
    asked = caller.start()
    assert b"the-recorded-value" not in raw(state(asked))
    assert b"look up" not in raw(state(asked))
    assert caller.reply(asked, {"who": accept(name="Ann")}).text == "the-recorded-value for Ann"


def test_an_encrypted_state_opens_after_the_key_was_rotated(weight: Weight) -> None:
    asked = Caller(weight, lambda: build(encrypt_state=True)).start()
    rotated = Caller(weight, lambda: build(encrypt_state=True, signing_keys=(OTHER_KEY, KEY)))
    assert rotated.reply(asked, {"who": accept(name="Ann")}).text == "the-recorded-value for Ann"


def test_a_server_without_the_setting_does_not_take_an_encrypted_state(weight: Weight) -> None:
    asked = Caller(weight, lambda: build(encrypt_state=True)).start()
    assert Caller(weight, build).reply(asked, {"who": accept(name="Ann")}).error["code"] == -32602


def test_encryption_without_its_extra_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_stateless.encryption", None)
    with pytest.raises(ConfigurationError, match=r"mcp-stateless\[encryption\]"):
        build(encrypt_state=True)
