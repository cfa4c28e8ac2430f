"""The state a client carries between two rounds: what it holds for, how long, and under which keys."""

from collections.abc import Callable
from typing import Any

import pytest

from mcp_stateless import ConfigurationError, Context, MCPServer, Settings
from tests.http.caller import KEY, Caller, Name, accept, made, named, not_asking, state, tool
from tests.http.door import FORMS, Weight

CLOCK = 1_800_000_000.0


def tampered(token: str) -> list[str]:
    middle = len(token) // 2
    other = "A" if token[middle] != "A" else "B"
    return [token[:middle] + other + token[middle + 1 :], token[:-1], token + "A", token + "=", "", "x", "é", token * 2]


def test_a_state_that_does_not_hold_is_one_fixed_refusal_with_the_reason_in_the_log(
    weight: Weight, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(weight, tool(named))
    asked = caller.start()
    states: list[Any] = [*tampered(state(asked)), None, 5, [], {}]
    for token in states:
        caplog.clear()
        answer = caller.reply(asked, {"name": accept(name="Ada")}, requestState=token)
        assert answer.status == 200
        assert answer.error == {"code": -32602, "message": "Invalid params: the request state does not hold"}
        assert "request state refused" in caplog.text


def test_a_state_holds_for_its_own_call_only(weight: Weight) -> None:
    def build() -> MCPServer:
        server = made()

        @server.tool("tool")
        async def one(ctx: Context[None], amount: int = 0) -> str:
            """Ask."""
            return f"{amount} {await named(ctx)}"

        @server.tool()
        async def other(ctx: Context[None], amount: int = 0) -> str:
            """Ask."""
            return f"{amount} {await named(ctx)}"

        @server.prompt("tool")
        async def prompt(ctx: Context[None]) -> str:
            """Ask."""
            return await named(ctx)

        return server

    caller = Caller(weight, build, amount=1)
    asked = caller.start()
    answers = {"name": accept(name="Ada")}
    assert caller.reply(asked, answers).text == "1 accept:Ada"
    others: list[dict[str, Any]] = [{"arguments": {"amount": 2}}, {"arguments": {}}, {"name": "other"}, {"extra": 1}]
    for params in others:
        assert caller.reply(asked, answers, **params).error["code"] == -32602
    caller.method = "prompts/get"
    assert caller.reply(asked, answers).error["code"] == -32602


def test_the_meta_of_the_next_round_may_differ(weight: Weight) -> None:
    caller = Caller(weight, tool(named))
    asked = caller.start()
    params = {**caller.params, "requestState": state(asked), "inputResponses": {"name": accept(name="Ada")}}
    answer = caller.door.modern("tools/call", params, capabilities=FORMS, meta={"traceparent": "00-1", "other": 1})
    assert answer.text == "accept:Ada"


def test_a_state_expires(weight: Weight) -> None:
    now = [CLOCK]

    def build() -> MCPServer:
        settings = Settings.model_validate({"signing_keys": (KEY,), "state_ttl_s": 60})
        server = MCPServer("sample", "1", settings=settings, clock=lambda: now[0])
        server.tool("tool", description="Ask.")(named)
        return server

    caller = Caller(weight, build)
    asked = caller.start()
    now[0] = CLOCK + 59
    assert caller.reply(asked, {"name": accept(name="Ada")}).text == "accept:Ada"
    now[0] = CLOCK + 60
    assert caller.reply(asked, {"name": accept(name="Ada")}).error["code"] == -32602


def test_keys_are_exchanged_by_a_deploy(weight: Weight) -> None:
    old, new = KEY, "another signing key of 32 bytes or more"
    caller = Caller(weight, tool(named, signing_keys=(old,)))
    asked = caller.start()
    answers = {"name": accept(name="Ada")}
    rotated = Caller(weight, tool(named, signing_keys=(new, old)))
    assert rotated.reply(asked, answers).text == "accept:Ada"
    under_new = rotated.start()
    retired = Caller(weight, tool(named, signing_keys=(new,)))
    assert retired.reply(under_new, answers).text == "accept:Ada"
    assert retired.reply(asked, answers).error["code"] == -32602


def test_a_state_too_large_to_travel_names_the_fix(weight: Weight) -> None:
    async def hoard(ctx: Context[None], size: int) -> str:
        await ctx.step("load", lambda: "a" * size)
        return await named(ctx)

    small = Caller(weight, tool(hoard, max_state_bytes=2000), size=1000)
    ended = small.reply(small.start(), {"name": accept(name="Ada")})
    assert ended.text == "accept:Ada"
    answer = Caller(weight, tool(hoard, max_state_bytes=2000), size=3000).start()
    assert answer.result["isError"] is True
    assert "2000" in answer.text
    assert "references to data" in answer.text


def test_on_lambda_a_server_that_asks_does_not_start_without_a_key(
    weight: Weight, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
    with pytest.raises(ConfigurationError, match=r"tool asks .* MCP_SIGNING_KEYS .* python3 -c"):
        weight(tool(direct, signing_keys=())())
    weight(tool(direct)())
    assert Caller(weight, tool(not_asking, signing_keys=())).start().text == "nothing to ask"


def test_a_question_the_start_could_not_see_is_a_clear_error_without_a_key(
    weight: Weight, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "function")

    def build() -> MCPServer:
        server = made(signing_keys=())
        server.tool("tool", description="Ask.", asks=False)(direct)
        return server

    answer = Caller(weight, build).start()
    assert answer.result["isError"] is True
    assert "not set up" in answer.text


async def direct(ctx: Context[None]) -> str:
    return (await ctx.elicit("Name?", Name)).action


# A deploy in the middle


def versioned(version: str, fn: Callable[..., Any]) -> Callable[[], MCPServer]:
    def build() -> MCPServer:
        server = made(version)
        server.tool("tool", description="Ask.")(fn)
        return server

    return build


def test_after_a_deploy_a_call_goes_on_while_its_records_match(weight: Weight) -> None:
    asked = Caller(weight, versioned("1", named)).start()
    after = Caller(weight, versioned("2", named))
    assert after.reply(asked, {"name": accept(name="Ada")}).text == "accept:Ada"


def test_after_a_deploy_that_changed_the_tool_the_call_starts_again(weight: Weight) -> None:
    asked = Caller(weight, versioned("1", named)).start()
    answer = Caller(weight, versioned("2", not_asking)).reply(asked, {"name": accept(name="Ada")})
    assert answer.result["isError"] is True
    assert "changed" in answer.text
    assert "start the call again" in answer.text
