"""What leaves the handler: text and binary bodies, single headers, empty replies, and an answer for every failure."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI, Response
from mangum.types import Receive, Scope, Send

from mcp_stateless.aws import LambdaHandler, encoded_size
from mcp_stateless.settings import Settings
from mcp_stateless.testing import events

BUILDERS: dict[str, Callable[..., dict[str, Any]]] = {
    "http_api": events.http_api_event,
    "rest_api": events.rest_api_event,
    "payload 1.0": lambda *args, **options: events.rest_api_event(*args, **options) | {"version": "1.0"},
    "function_url": events.function_url_event,
    "alb": events.alb_event,
    "alb, several values": lambda *args, **options: events.alb_event(*args, **options, multi_value=True),
}
EVERY_SOURCE = pytest.mark.parametrize("source", BUILDERS)


def reply(source: str, response: Callable[[], Response], method: str = "GET") -> dict[str, Any]:
    app = FastAPI()
    app.add_api_route("/", response, methods=[method], response_model=None)
    return LambdaHandler(app, Settings())(BUILDERS[source](method, "/"))


def headers(result: dict[str, Any]) -> dict[str, str]:
    """The headers of a result; fails when one of them is there twice."""
    found = dict(result.get("headers", {}))
    for name, values in result.get("multiValueHeaders", {}).items():
        assert name not in found
        (found[name],) = values
    return found


@EVERY_SOURCE
@pytest.mark.parametrize("text", ["日本語", "\u0000", "🎉"])
@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream", "application/problem+json"])
def test_text_is_never_base64(source: str, text: str, media_type: str) -> None:
    result = reply(source, lambda: Response(text, media_type=media_type))
    assert result["isBase64Encoded"] is False
    assert result["body"] == text


@EVERY_SOURCE
def test_binary_bodies_of_other_routes_stay_binary(source: str) -> None:
    result = reply(source, lambda: Response(b"\x89PNG\xff", media_type="image/png"))
    assert result["isBase64Encoded"] is True
    assert base64.b64decode(result["body"]) == b"\x89PNG\xff"


@EVERY_SOURCE
@pytest.mark.parametrize("status", [202, 204, 405])
@pytest.mark.parametrize("media_type", [None, "application/json"])
def test_an_empty_reply_has_no_body_and_no_content_type(source: str, status: int, media_type: str | None) -> None:
    result = reply(source, lambda: Response(status_code=status, media_type=media_type))
    assert result["statusCode"] == status
    assert result["body"] == ""
    assert "content-type" not in headers(result)


@EVERY_SOURCE
def test_a_reply_to_head_keeps_the_content_type(source: str) -> None:
    result = reply(source, lambda: Response(media_type="application/json"), method="HEAD")
    assert headers(result)["content-type"] == "application/json"


@EVERY_SOURCE
def test_several_values_of_a_header_leave_as_one(source: str) -> None:
    def response() -> Response:
        found = Response("{}", media_type="application/json")
        found.raw_headers += [(b"Vary", b"origin"), (b"vary", b"accept")]
        return found

    assert headers(reply(source, response))["vary"] == "origin, accept"


@EVERY_SOURCE
def test_cookies_of_other_routes_are_left_apart(source: str) -> None:
    def response() -> Response:
        found = Response("{}", media_type="application/json")
        found.set_cookie("a", "1")
        found.set_cookie("b", "2")
        return found

    result = reply(source, response)
    several = result.get("multiValueHeaders", {})
    cased = [value for name, value in result.get("headers", {}).items() if name.lower() == "set-cookie"]
    cookies = result.get("cookies") or several.get("set-cookie") or cased
    assert [cookie.partition(";")[0] for cookie in cookies] == ["a=1", "b=2"]


@EVERY_SOURCE
def test_a_latin_1_header_is_translated(source: str) -> None:
    def response() -> Response:
        found = Response("{}", media_type="application/json")
        found.raw_headers.append((b"x-name", b"caf\xe9"))
        return found

    assert headers(reply(source, response))["x-name"] == "café"


async def returns_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    pass


async def stops_half_way(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})


async def fails_half_way(scope: Scope, receive: Receive, send: Send) -> None:
    await stops_half_way(scope, receive, send)
    raise ValueError("postgres://u:pw@db.internal")


async def sends_out_of_order(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.body", "body": b"early"})


async def sends_an_odd_status(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": "fine", "headers": []})


def raises(error: BaseException) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return app


async def exits_in_a_task(scope: Scope, receive: Receive, send: Send) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async with asyncio.TaskGroup() as group:
        group.create_task(leave())


@EVERY_SOURCE
@pytest.mark.parametrize(
    "app",
    [
        returns_nothing,
        stops_half_way,
        fails_half_way,
        sends_out_of_order,
        sends_an_odd_status,
        exits_in_a_task,
        raises(ValueError("postgres://u:pw@db.internal")),
        raises(SystemExit(1)),
        raises(KeyboardInterrupt()),
        raises(asyncio.CancelledError()),
        raises(RecursionError()),
        raises(MemoryError()),
        raises(BaseExceptionGroup("two", [SystemExit(1), ValueError("x")])),
    ],
)
def test_an_application_that_fails_is_an_internal_error_and_a_log_entry(
    source: str, app: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler = LambdaHandler(app, Settings())
    for _ in range(2):
        caplog.clear()
        result = handler(BUILDERS[source]("GET", "/"))
        assert result["statusCode"] == 500
        assert headers_of_error(result) == "application/json"
        error = {"code": -32603, "message": "Internal error"}
        assert json.loads(result["body"]) == {"jsonrpc": "2.0", "error": error}
        assert result["isBase64Encoded"] is False
        assert caplog.records


def headers_of_error(result: dict[str, Any]) -> str:
    several = result.get("multiValueHeaders", {}).get("content-type")
    found: str = several[0] if several else result["headers"]["content-type"]
    return found


def test_a_failure_after_the_whole_reply_keeps_the_reply(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})
        raise ValueError("afterwards")

    assert LambdaHandler(app, Settings())(events.http_api_event())["body"] == "whole"
    assert "afterwards" in caplog.text


def test_an_application_that_listens_on_hears_that_the_caller_is_gone() -> None:
    heard: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})
        heard.append((await receive())["type"])

    assert LambdaHandler(app, Settings())(events.http_api_event())["body"] == "whole"
    assert heard == ["http.request", "http.disconnect"]


@EVERY_SOURCE
@pytest.mark.parametrize(
    ("character", "count", "fits"),
    [("a", 6_200_000, True), ("a", 6_300_000, False), ('"', 3_200_000, False), ("日", 2_150_000, False)],
)
def test_a_result_over_the_limit_of_its_source_becomes_an_error_that_names_both_sizes(
    source: str, character: str, count: int, fits: bool
) -> None:
    limit = 1024 * 1024 if source.startswith("alb") else 6_291_556
    result = reply(source, lambda: Response(character * count, media_type="text/plain"))
    assert encoded_size(result) <= limit
    if fits and not source.startswith("alb"):
        assert result["statusCode"] == 200
        return
    assert result["statusCode"] == 500
    error = json.loads(result["body"])["error"]
    assert error["code"] == -32603
    assert str(limit) in error["message"]


def test_sizes_are_measured_as_the_runtime_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"body": "日"}
    monkeypatch.setenv("AWS_EXECUTION_ENV", "AWS_Lambda_python3.13")
    assert encoded_size(result) == len('{"body": "日"}'.encode())
    monkeypatch.setenv("AWS_EXECUTION_ENV", "AWS_Lambda_python3.11")
    assert encoded_size(result) == len('{"body": "\\u65e5"}')
