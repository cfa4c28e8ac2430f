"""Which source an event comes from, and what its odd parts become."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mangum.types import Receive, Scope, Send

from mcp_stateless import sources
from mcp_stateless.aws import LambdaHandler
from mcp_stateless.invocation import SCOPE_KEY, Invocation
from mcp_stateless.settings import Settings
from mcp_stateless.testing import events

BUILDERS: dict[str, Callable[..., dict[str, Any]]] = {
    "http_api": events.http_api_event,
    "rest_api": events.rest_api_event,
    "function_url": events.function_url_event,
    "alb": events.alb_event,
}
EVERY_SOURCE = pytest.mark.parametrize("source", BUILDERS)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what the application saw."""
    message = await receive()
    seen = {
        "method": scope["method"],
        "path": scope["path"],
        "root_path": scope["root_path"],
        "query": scope["query_string"].decode(),
        "headers": {name.decode(): value.decode() for name, value in scope["headers"]},
        "server": scope["server"],
        "client": scope["client"],
        "scheme": scope["scheme"],
        "body": message["body"].decode("utf-8", "replace"),
    }
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(seen).encode()})


def answer(event: Mapping[str, Any], settings: Settings | None = None) -> dict[str, Any]:
    return LambdaHandler(echo, settings or Settings())(event)


def seen(event: Mapping[str, Any], settings: Settings | None = None) -> dict[str, Any]:
    result = answer(event, settings)
    assert result["statusCode"] == 200, result
    found: dict[str, Any] = json.loads(result["body"])
    return found


def refusal(event: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    result = answer(event)
    body = json.loads(result["body"])
    assert "id" not in body
    assert result["headers"]["content-type"] == "application/json"
    return result["statusCode"], body["error"]


@EVERY_SOURCE
def test_each_source_is_recognised(source: str) -> None:
    found = sources.recognise(BUILDERS[source]("GET", "/health"))
    assert found is not None
    assert found.name == source


def test_payload_1_0_of_an_http_api_is_not_taken_for_a_rest_api() -> None:
    event = events.rest_api_event("GET", "/health", stage="$default") | {"version": "1.0"}
    found = sources.recognise(event)
    assert found is not None
    assert (found.name, found.shape) == ("http_api", "v1")
    assert seen(event)["path"].endswith("/health")


@pytest.mark.parametrize(
    "event",
    [
        {"Records": [{"eventSource": "aws:sqs"}]},
        {"requestContext": {"connectionId": "x", "eventType": "MESSAGE"}, "body": "{}"},
        {"version": "2.0", "requestContext": {"serviceNetworkArn": "arn"}, "path": "/", "method": "GET"},
        {"requestContext": None, "httpMethod": "GET"},
        {"version": "2.0", "requestContext": {"http": None}},
    ],
)
def test_events_that_carry_no_http_request_are_not_recognised(event: dict[str, Any]) -> None:
    assert sources.recognise(event) is None


@EVERY_SOURCE
def test_a_request_arrives_as_it_was_sent(source: str) -> None:
    headers = {"content-type": "application/json", "cookie": "a=1; b=2"}
    found = seen(BUILDERS[source]("POST", "/mcp", headers, {"text": "é"}, query="a=1&a=2&b=%C3%A9"))
    assert found["method"] == "POST"
    assert found["path"].endswith("/mcp")
    assert json.loads(found["body"]) == {"text": "é"}
    assert found["headers"]["cookie"] == "a=1; b=2"
    assert found["scheme"] == "https"
    assert found["client"] == [events.SOURCE_IP, 0]
    assert found["query"] == "a=1&a=2&b=%C3%A9" if source != "alb" else "a=2&b=%C3%A9"


def test_all_values_of_a_query_parameter_arrive_from_a_target_group_that_sends_them() -> None:
    found = seen(events.alb_event("GET", "/", query="a=1&a=2&b=%C3%A9", multi_value=True))
    assert found["query"] == "a=1&a=2&b=%C3%A9"


def test_several_cookie_headers_of_a_rest_api_are_joined_as_cookies() -> None:
    found = seen(events.rest_api_event("GET", "/", [("Cookie", "a=1"), ("Cookie", "b=2"), ("X-A", "1"), ("X-A", "2")]))
    assert found["headers"]["cookie"] == "a=1; b=2"
    assert found["headers"]["x-a"] == "1, 2"


@EVERY_SOURCE
@pytest.mark.parametrize("headers", [None, {}])
def test_null_and_empty_header_maps_count_as_empty(source: str, headers: object) -> None:
    event = BUILDERS[source]("GET", "/health") | {"headers": headers}
    if source == "rest_api":
        event |= {"multiValueHeaders": headers}
    assert seen(event)["headers"] == {}


@EVERY_SOURCE
def test_absent_header_maps_count_as_empty(source: str) -> None:
    event = BUILDERS[source]("GET", "/health")
    event.pop("headers")
    event.pop("multiValueHeaders", None)
    assert seen(event)["headers"] == {}


@EVERY_SOURCE
def test_null_and_odd_header_values_are_no_headers(source: str) -> None:
    headers = {"Content-Type": None, "X-Number": 5, "X-Flag": True, "X-Map": {"a": 1}, "X-List": ["a", None, "b"]}
    event = BUILDERS[source]("GET", "/health") | {"headers": headers}
    event.pop("multiValueHeaders", None)
    assert seen(event)["headers"] == {"x-number": "5", "x-flag": "true", "x-list": "a, b"}


@EVERY_SOURCE
@pytest.mark.parametrize("headers", [5, "a: b", ["a"], True])
def test_a_header_map_that_is_no_map_is_refused(source: str, headers: object) -> None:
    status, error = refusal(BUILDERS[source]("GET", "/health") | {"headers": headers})
    assert (status, error["code"]) == (400, -32600)


@EVERY_SOURCE
def test_a_missing_method_is_refused(source: str) -> None:
    event = BUILDERS[source]("GET", "/health")
    if "httpMethod" in event:
        event["httpMethod"] = None
    else:
        del event["requestContext"]["http"]["method"]
    status, error = refusal(event)
    assert (status, error["code"]) == (400, -32600)


@EVERY_SOURCE
@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("[::1]:8080", ["::1", 8080]),
        ("[::1]", ["::1", 443]),
        ("a:b:c", ["a:b:c", 443]),
        ("example.com:99999999", ["example.com", 443]),
        ("example.com:", ["example.com", 443]),
        ("example.com:8443", ["example.com", 8443]),
        ("", ["localhost", 443]),
    ],
)
def test_odd_hosts_cost_the_port_but_not_the_request(source: str, host: str, server: list[object]) -> None:
    event = BUILDERS[source]("GET", "/health", {"x-forwarded-port": "443, 80", "host": host})
    found = seen(event)
    assert found["server"] == server
    assert found["headers"]["host"] == host


@EVERY_SOURCE
@pytest.mark.parametrize(("proto", "scheme"), [("http", "http"), ("https,http", "https"), ("gopher", "https")])
def test_the_scheme_is_http_only_when_the_source_says_so(source: str, proto: str, scheme: str) -> None:
    assert seen(BUILDERS[source]("GET", "/", {"x-forwarded-proto": proto}))["scheme"] == scheme


@EVERY_SOURCE
def test_a_body_in_base64_is_decoded(source: str) -> None:
    event = BUILDERS[source]("POST", "/mcp") | {"body": "eyJ0IjogIsOpIn0=", "isBase64Encoded": True}
    assert json.loads(seen(event)["body"]) == {"t": "é"}
    assert json.loads(seen(event | {"isBase64Encoded": "true"})["body"]) == {"t": "é"}
    assert seen(event | {"isBase64Encoded": "false"})["body"] == "eyJ0IjogIsOpIn0="


@EVERY_SOURCE
@pytest.mark.parametrize("body", ["***", "abc", "é", 5, {"a": 1}])
def test_a_body_that_is_not_what_the_event_claims_is_a_parse_error(source: str, body: object) -> None:
    event = BUILDERS[source]("POST", "/mcp") | {"body": body, "isBase64Encoded": True}
    status, error = refusal(event)
    assert (status, error["code"]) == (400, -32700)


@EVERY_SOURCE
def test_a_missing_body_is_empty(source: str) -> None:
    event = BUILDERS[source]("POST", "/mcp")
    assert seen(event | {"body": None})["body"] == ""
    event.pop("body", None)
    event.pop("isBase64Encoded")
    assert seen(event)["body"] == ""


@EVERY_SOURCE
def test_lone_surrogates_reach_the_application_as_something_it_can_refuse(source: str) -> None:
    event = BUILDERS[source]("POST", "/mcp", {"x": "\ud800"}) | {"body": '"\ud800"', "isBase64Encoded": False}
    found = seen(event)
    assert found["headers"]["x"] == "?"
    assert "�" in found["body"]


@EVERY_SOURCE
def test_the_application_sees_the_limits_and_the_original_event(source: str) -> None:
    found: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.extend([scope[SCOPE_KEY], scope["aws.event"]])
        await echo(scope, receive, send)

    event = BUILDERS[source]("GET", "/health")
    assert LambdaHandler(app, Settings())(event)["statusCode"] == 200
    invocation, adapter_event = found
    assert isinstance(invocation, Invocation)
    assert invocation.source == source
    assert invocation.event == event == adapter_event
    assert invocation.max_request_bytes == (1024 * 1024 if source == "alb" else 6 * 1024 * 1024)
    assert invocation.max_response_bytes == (1024 * 1024 if source == "alb" else 6_291_556)
