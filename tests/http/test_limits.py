"""Limits of the platform: how large a request and a reply may be, and how long a call may take."""

import asyncio
import json
import threading
from typing import Any

import pytest

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.testing import events, lambda_context
from tests.http.door import JSON_HEADERS, MODERN, Door, Weight, request

MIB = 1024 * 1024
INVOCATION = 6 * MIB


def repeating(**settings: object) -> MCPServer:
    server = MCPServer("sample", settings=Settings.model_validate(settings))

    @server.tool(structured_output=False)
    def repeat(text: str, times: int) -> str:
        """Repeat a text."""
        return text * times

    @server.resource("text://{text}/{times}")
    def repeated(text: str, times: int) -> str:
        """Repeat a text."""
        return text * times

    @server.tool()
    def ping() -> str:
        """Answer."""
        return "pong"

    return server


def call(
    weight: Weight, text: str, times: int, builder: Any = events.http_api_event, version: str = "2025-11-25"
) -> Any:
    """The raw invocation result: what the runtime would send."""
    message = request("tools/call", {"name": "repeat", "arguments": {"text": text, "times": times}})
    headers = {**JSON_HEADERS, "mcp-protocol-version": version}
    return weight(repeating())(builder("POST", "/mcp", headers, message), lambda_context())


def size(result: object) -> int:
    return len(json.dumps(result).encode())


# B39
@pytest.mark.parametrize(("text", "times"), [("a", 6_501_171), ('"', 3_200_000), ("日", 1_500_000), ("\n", 3_200_000)])
def test_a_reply_too_large_as_the_runtime_writes_it_is_an_error_that_says_so(
    weight: Weight, text: str, times: int
) -> None:
    result = call(weight, text, times)
    assert result["statusCode"] == 200
    assert size(result) < 2000
    answer = json.loads(result["body"])["result"]
    assert answer["isError"] is True
    told = answer["content"][0]["text"]
    assert "repeat" in told
    assert "too large" in told


@pytest.mark.parametrize(("text", "times"), [("a", 5_900_000), ('"', 1_400_000), ("日", 900_000)])
def test_a_reply_just_under_the_limit_goes_out_whole(weight: Weight, text: str, times: int) -> None:
    result = call(weight, text, times)
    assert json.loads(result["body"])["result"]["content"][0]["text"] == text * times
    assert size(result) <= INVOCATION


def test_a_load_balancer_takes_less(weight: Weight) -> None:
    result = call(weight, "a", 1_100_000, events.alb_event)
    assert "too large" in json.loads(result["body"])["result"]["content"][0]["text"]
    assert json.loads(call(weight, "a", 900_000, events.alb_event)["body"])["result"]["isError"] is False


def test_a_resource_too_large_is_a_protocol_error(weight: Weight) -> None:
    door = Door(weight(repeating()))
    answer = door.legacy("resources/read", {"uri": "text://a/6300000"})
    assert (answer.status, answer.error["code"]) == (200, -32603)
    assert "too large" in answer.error["message"]


def test_the_error_in_its_place_is_whole_in_the_modern_era_too(weight: Weight) -> None:
    door = Door(weight(repeating()))
    answer = door.modern("tools/call", {"name": "repeat", "arguments": {"text": "a", "times": 6_300_000}})
    assert answer.status == 200
    assert (answer.result["resultType"], answer.result["isError"]) == ("complete", True)
    assert answer.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "sample"


def test_a_batch_too_large_is_one_error(weight: Weight) -> None:
    message = request("tools/call", {"name": "repeat", "arguments": {"text": "a", "times": 3_500_000}})
    answer = Door(weight(repeating())).post([message, {**message, "id": 2}])
    assert len(answer.body) < 2000
    assert "too large" in answer.error["message"]


def test_a_stream_too_large_falls_back_like_json(weight: Weight) -> None:
    server = MCPServer("sample", settings=Settings(max_event_bytes=INVOCATION * 2))

    @server.tool(structured_output=False)
    async def big(ctx: Context[None]) -> str:
        """Return much."""
        await ctx.report_progress(1)
        return "a" * 6_300_000

    params = {"name": "big", "arguments": {}, "_meta": {"progressToken": 1}}
    assert "too large" in Door(weight(server)).legacy("tools/call", params).text


# B41
@pytest.mark.parametrize("source", ["http_api", "function_url", "rest_api"])
def test_a_request_over_the_limit_is_refused_before_it_is_parsed(weight: Weight, source: str) -> None:
    answer = Door(weight(repeating()), source).post("[" * 7_000_000)
    assert (answer.status, answer.error["code"]) == (413, -32600)
    assert "id" not in answer.json


def test_the_request_limit_can_be_lowered(weight: Weight) -> None:
    door = Door(weight(repeating(max_request_bytes=1000)))
    assert door.post(request("tools/list", {"x": "a" * 2000})).status == 413
    assert door.post(request("tools/list", {"x": "a" * 500})).status == 200


@pytest.mark.parametrize("text", ["[" * 200_000 + "]" * 200_000, '{"a":' * 200_000 + "1" + "}" * 200_000])
def test_nesting_without_end_is_a_parse_error(weight: Weight, text: str) -> None:
    door = Door(weight(repeating()))
    answer = door.post(text)
    assert (answer.status, answer.error["code"]) == (400, -32700)
    assert door.call("ping").text == "pong"


def test_header_fields_have_a_limit_too(weight: Weight) -> None:
    answer = Door(weight(repeating())).post(request("tools/list"), {"x-large": "a" * 40_000})
    assert (answer.status, answer.error["code"]) == (431, -32600)


# B40
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.parametrize("name", ["sleep", "stuck"])
def test_a_call_that_overruns_is_ended_in_time_and_says_why(weight: Weight, name: str, version: str) -> None:
    server, release = overrunning()
    door = Door(weight(server), context_ms=300)
    ask = door.modern if version == MODERN else door.legacy
    try:
        answer = ask("tools/call", {"name": name, "arguments": {}})
    finally:
        release.set()
    assert (answer.status, answer.result["isError"]) == (200, True)
    assert name in answer.text
    assert "function's timeout" in answer.text
    assert door.call("ping").text == "pong"


def test_a_tool_that_ignores_its_cancellation_is_left_behind(weight: Weight) -> None:
    server, release = overrunning()
    release.set()
    door = Door(weight(server), context_ms=1200)
    answer = door.call("stubborn")
    assert "stubborn was stopped" in answer.text
    assert door.call("ping").text == "pong"


def test_three_overruns_in_threads_in_a_row_leave_the_environment_fit(weight: Weight) -> None:
    server, release = overrunning()
    door = Door(weight(server), context_ms=200)
    try:
        for _ in range(3):
            assert door.call("stuck").result["isError"] is True
        assert door.call("ping").text == "pong"
    finally:
        release.set()


def test_a_thread_that_overran_cannot_speak_into_another_call(weight: Weight) -> None:
    server = MCPServer("sample")
    release, ended = threading.Event(), threading.Event()
    errors: list[str] = []

    @server.tool()
    def stuck(ctx: Context[None]) -> str:
        """Overrun, then report."""
        release.wait(10)
        try:
            ctx.blocking.report_progress(1)
        except RuntimeError as error:
            errors.append(str(error))
        ended.set()
        return "late"

    @server.tool()
    async def next_one(ctx: Context[None]) -> str:
        """Let the other one go on meanwhile."""
        release.set()
        await asyncio.to_thread(ended.wait, 10)
        return "done"

    door = Door(weight(server), context_ms=300)
    meta = {"_meta": {"progressToken": 1}}
    assert door.legacy("tools/call", {"name": "stuck", **meta}).result["isError"] is True
    answer = Door(door._handler).legacy("tools/call", {"name": "next_one", **meta})
    assert answer.text == "done"
    assert errors == ["this call was answered already; nothing more can be sent for it"]


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_overrunning_elsewhere_is_a_protocol_error(weight: Weight, method: str) -> None:
    server = MCPServer("sample")

    @server.prompt()
    async def slow() -> str:
        """Sleep."""
        await asyncio.sleep(60)
        return ""

    @server.resource("slow://it")
    async def slow_resource() -> str:
        """Sleep."""
        await asyncio.sleep(60)
        return ""

    params = {"name": "slow"} if method == "prompts/get" else {"uri": "slow://it"}
    answer = Door(weight(server), context_ms=300).legacy(method, params)
    assert (answer.status, answer.error["code"]) == (200, -32603)
    assert "slow" in answer.error["message"]


def test_the_gateways_limit_counts_when_it_is_the_shorter_one(weight: Weight) -> None:
    server, release = overrunning(gateway_timeout_ms=300)
    release.set()
    answer = Door(weight(server), context_ms=900_000).call("sleep")
    assert "0.3 s" in answer.text


def test_without_a_limit_nearby_a_tool_knows_its_time(weight: Weight) -> None:
    server = MCPServer("sample")

    @server.tool()
    def left(ctx: Context[None]) -> int | None:
        """Tell the time left."""
        return ctx.remaining_time_ms

    left_ms = int(Door(weight(server), context_ms=10_000).call("left").text)
    assert 5_000 < left_ms <= 9_000


def overrunning(**settings: object) -> tuple[MCPServer, threading.Event]:
    server = MCPServer("sample", settings=Settings.model_validate(settings))
    release = threading.Event()

    @server.tool()
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(60)
        return ""

    @server.tool()
    def stuck() -> str:
        """Hang in a thread."""
        release.wait(10)
        return ""

    @server.tool()
    async def stubborn() -> str:
        """Ignore the first cancellation."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)
        return ""

    @server.tool()
    def ping() -> str:
        """Answer."""
        return "pong"

    return server, release
