"""Whatever comes in: an answer that is JSON-RPC or empty, never a 5xx, never a trace, and the next call works."""

import base64
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.testing import events, lambda_context
from mcp_stateless.testing.gateway import to_http_response
from tests.http.door import FORMS, META_CAPABILITIES, META_VERSION, MODERN, Door, Handler, modern_headers

KEY = "a signing key of thirty-two bytes"
METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "notifications/initialized",
    "tasks/get",
]
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN, "2030-01-01", ""]
KEYS = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "_meta",
    "name",
    "arguments",
    "uri",
    "cursor",
    "ref",
    "argument",
    "context",
    "type",
    "value",
    "level",
    "protocolVersion",
    "progressToken",
    "requestState",
    "inputResponses",
    "k",
    "a",
    "b",
    META_VERSION,
    META_CAPABILITIES,
]
WORDS = st.sampled_from(
    ["2.0", "add", "ask", "greet", "text://one", "text://many/x", "ref/prompt", *METHODS, *VERSIONS]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    WORDS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=15,
)
PARAMS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)
MESSAGES = st.builds(
    lambda method, params, more: {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more},
    st.sampled_from(METHODS),
    PARAMS,
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "result"]), VALUES, max_size=1),
)
BODIES = st.one_of(
    MESSAGES.map(json.dumps),
    st.lists(MESSAGES, max_size=3).map(json.dumps),
    VALUES.map(json.dumps),
    MESSAGES.map(lambda message: json.dumps(message)[:-3]),
    st.binary(max_size=60),
    st.text(max_size=60),
)
HEADER_TEXT = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=20)
HEADERS = st.dictionaries(
    st.sampled_from(
        ["mcp-protocol-version", "mcp-method", "mcp-name", "accept", "origin", "authorization", "mcp-session-id",
         "mcp-param-a", "content-type", "last-event-id", "access-control-request-headers", "x"]
    ),
    st.one_of(
        HEADER_TEXT,
        st.sampled_from([*VERSIONS, *METHODS, "add", "=?base64?YWRk?=", "=?base64?%?=", "*/*", "http://localhost:1",
                         "application/json", "text/event-stream", "text/event-stream, application/json;q=0"]),
    ),
    max_size=5,
)  # fmt: skip
SOURCES: list[Any] = [events.http_api_event, events.rest_api_event, events.function_url_event, events.alb_event]


def build(weight: str) -> Handler:
    server = MCPServer(
        "sample", "1", settings=Settings.model_validate({"signing_keys": (KEY,), "log_messages": "debug"})
    )

    @server.tool()
    async def add(a: int, b: int, ctx: Context[None]) -> int:
        """Add two numbers."""
        await ctx.report_progress(a)
        return a + b

    @server.tool()
    async def ask(ctx: Context[None], a: str = "") -> str:
        """Ask."""
        answer = await ctx.elicit("?", {"type": "object", "properties": {}}, key="k")
        return answer.action

    @server.prompt()
    def greet(name: str) -> str:
        """Greet."""
        return name

    @server.resource("text://one")
    def one() -> str:
        """One."""
        return "1"

    @server.resource("text://many/{n}")
    def many(n: str) -> str:
        """Many."""
        return n

    @server.completion()
    def complete(ref: Any, argument: Any, context: Any) -> list[str]:
        """Complete."""
        return ["a"]

    return server.lambda_handler(server.app()) if weight == "FastAPI app" else server.lambda_handler()


HANDLERS = {weight: build(weight) for weight in ("endpoint alone", "FastAPI app")}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Refusals are logged one by one; thousands of lines would hide what fails."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def check(event: Any) -> None:
    """Both weights answer alike and well, and live on."""
    results = [handler(event, lambda_context()) for handler in HANDLERS.values()]
    first = results[0]
    json.dumps(first)
    response = to_http_response(first)
    text = response.body.decode()
    assert 200 <= response.status < 500, (event, first)
    for word in ("Traceback", "pydantic", "mcp_stateless/", "site-packages"):
        assert word not in text
    kind = response.header("content-type")
    if not text:
        assert kind is None
    elif kind == "text/event-stream":
        assert all(line.startswith("data: {") for line in text.split("\n") if line)
    else:
        answer = json.loads(text)
        for message in answer if isinstance(answer, list) else [answer]:
            assert message["jsonrpc"] == "2.0"
            assert "\n" not in message.get("error", {}).get("message", "")
    if "requestState" not in text and "eference" not in text:
        assert results[0] == results[1]


def alive() -> None:
    for handler in HANDLERS.values():
        assert Door(handler).call("add", {"a": 1, "b": 2}).text == "3"


@given(st.sampled_from(SOURCES), BODIES, HEADERS)
@settings(max_examples=400, deadline=None)
def test_any_body_and_headers_to_the_endpoint(source: Any, body: Any, headers: dict[str, str]) -> None:
    check(source("POST", "/mcp", {"content-type": "application/json", **headers}, body))


@given(MESSAGES, st.booleans())
@settings(max_examples=400, deadline=None)
def test_any_well_formed_message_of_either_era(message: dict[str, Any], modern: bool) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    params = message["params"]
    if modern and isinstance(params, dict) and isinstance(message["method"], str):
        message["params"] = params = {**params, "_meta": {META_VERSION: MODERN, META_CAPABILITIES: FORMS}}
        headers |= modern_headers(message["method"], params)
    check(events.http_api_event("POST", "/mcp", headers, message))


@given(st.sampled_from(SOURCES), st.sampled_from(["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]), HEADERS)
@settings(max_examples=150, deadline=None)
def test_any_other_method(source: Any, method: str, headers: dict[str, str]) -> None:
    check(source(method, "/mcp", headers))


STATES = st.one_of(
    VALUES,
    st.binary(max_size=120).map(lambda raw: base64.urlsafe_b64encode(b"\x01" + raw).decode().rstrip("=")),
)


@given(STATES, VALUES)
@settings(max_examples=200, deadline=None)
def test_any_state_and_answers(state: Any, answers: Any) -> None:
    params = {"name": "ask", "arguments": {}, "requestState": state, "inputResponses": answers}
    answer = Door(HANDLERS["endpoint alone"]).modern("tools/call", params, capabilities=FORMS)
    assert (answer.status, answer.error["code"]) == (200, -32602)


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(max_size=6)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.sampled_from(
    ["headers", "multiValueHeaders", "body", "isBase64Encoded", "rawPath", "path", "requestContext", "httpMethod",
     "cookies", "queryStringParameters", "rawQueryString", "version", "routeKey", "resource", "pathParameters"]
)  # fmt: skip


@given(st.sampled_from(SOURCES), st.dictionaries(PARTS, ODD, min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_event_with_odd_parts_is_answered(source: Any, parts: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    event = source("POST", "/mcp", {"content-type": "application/json"}, message) | parts
    for handler in HANDLERS.values():
        result = handler(event, lambda_context())
        assert result.get("statusCode", 200) < 500, (event, result)
        assert "Traceback" not in json.dumps(result)


@given(ODD)
@settings(max_examples=150, deadline=None)
def test_anything_at_all_as_an_event_is_answered(event: Any) -> None:
    for handler in HANDLERS.values():
        result = handler(event, None)
        assert isinstance(result, dict)
        assert result.get("statusCode", 200) < 500


@pytest.fixture(autouse=True, scope="module")
def lives_on() -> Iterator[None]:
    yield
    alive()
