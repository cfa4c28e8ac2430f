"""HTTP requests as events and results as HTTP responses, as the real sources do it."""

import base64
import json
from typing import Any

import pytest

from mcp_stateless.testing import InvocationError
from mcp_stateless.testing.events import Source, alb_event, function_url_event, http_api_event, rest_api_event
from mcp_stateless.testing.gateway import FAILED, Gateway, from_http_request, to_http_response

ALL: list[Source] = ["http_api", "rest_api", "function_url", "alb"]
EVERY_SOURCE = pytest.mark.parametrize("source", ALL)


class Recorder:
    """An environment that keeps the events and gives a prepared result."""

    def __init__(self, result: Any = None) -> None:
        self.events: list[Any] = []
        self.result = {"statusCode": 200} if result is None else result

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        self.events.append(event)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def test_only_rest_apis_keep_the_case_of_header_names() -> None:
    headers = {"Content-Type": "application/json", "X-Custom": "1"}
    assert http_api_event("POST", "/mcp", headers)["headers"]["x-custom"] == "1"
    assert function_url_event("POST", "/mcp", headers)["headers"]["x-custom"] == "1"
    assert alb_event("POST", "/mcp", headers)["headers"]["x-custom"] == "1"
    assert rest_api_event("POST", "/mcp", headers)["headers"]["X-Custom"] == "1"


@pytest.mark.parametrize(
    ("content_type", "is_base64"),
    [
        ("application/json", False),
        ("application/json; charset=utf-8", False),
        ("text/plain", False),
        ("application/xml", False),
        ("application/javascript", False),
        ("application/octet-stream", True),
        ("application/x-www-form-urlencoded", True),
        (None, True),
    ],
)
@pytest.mark.parametrize("build", [http_api_event, function_url_event, alb_event])
def test_bodies_are_text_only_for_text_types(build: Any, content_type: str | None, is_base64: bool) -> None:
    event = build("POST", "/mcp", {"content-type": content_type} if content_type else {}, '{"a": "é"}')
    assert event["isBase64Encoded"] is is_base64
    body = base64.b64decode(event["body"]).decode() if is_base64 else event["body"]
    assert body == '{"a": "é"}'


def test_text_that_is_no_utf_8_is_base64_whatever_its_type() -> None:
    event = http_api_event("POST", "/mcp", {"content-type": "text/plain"}, b"\xff")
    assert (event["body"], event["isBase64Encoded"]) == ("/w==", True)


def test_a_rest_api_takes_every_body_for_text() -> None:
    event = rest_api_event("POST", "/mcp", {}, b"\xff{}")
    assert (event["body"], event["isBase64Encoded"]) == ("�{}", False)


def test_missing_bodies_look_different_at_each_source() -> None:
    assert "body" not in http_api_event("GET", "/")
    assert "body" not in function_url_event("GET", "/")
    assert rest_api_event("GET", "/")["body"] is None
    assert alb_event("GET", "/")["body"] == ""


def test_each_source_puts_the_stage_where_it_does() -> None:
    api = http_api_event("GET", "/mcp", stage="prod")
    assert (api["rawPath"], api["requestContext"]["http"]["path"]) == ("/prod/mcp", "/prod/mcp")
    rest = rest_api_event("GET", "/mcp", stage="prod")
    assert (rest["path"], rest["requestContext"]["path"]) == ("/mcp", "/prod/mcp")
    mapped = rest_api_event("GET", "/mcp", base_path="/v1")
    assert (mapped["path"], mapped["requestContext"]["path"]) == ("/v1/mcp", "/v1/mcp")
    assert mapped["pathParameters"] == {"proxy": "mcp"}


def test_a_stage_in_the_url_is_the_stage_of_the_api() -> None:
    api = "https://abc123.execute-api.us-east-1.amazonaws.com"
    assert from_http_request("http_api", "GET", f"{api}/prod/mcp", stage="prod")["rawPath"] == "/prod/mcp"
    assert from_http_request("http_api", "GET", "https://mcp.example.com/mcp", stage="prod")["rawPath"] == "/prod/mcp"
    assert from_http_request("rest_api", "GET", f"{api}/prod/mcp", stage="prod")["path"] == "/mcp"
    assert from_http_request("rest_api", "GET", f"{api}/product", stage="prod")["path"] == "/product"


def test_cookies_and_repeated_headers_of_version_2_are_apart() -> None:
    event = http_api_event("GET", "/", [("Cookie", "a=1; b=2"), ("X-A", "1"), ("X-A", "2")])
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]
    assert event["headers"]["x-a"] == "1,2"


def test_load_balancers_leave_queries_encoded_and_gateways_do_not() -> None:
    assert alb_event("GET", "/", query="a=%C3%A9&b")["queryStringParameters"] == {"a": "%C3%A9", "b": ""}
    assert http_api_event("GET", "/", query="a=%C3%A9&a=b")["queryStringParameters"] == {"a": "é,b"}
    assert rest_api_event("GET", "/", query="a=1&a=2")["multiValueQueryStringParameters"] == {"a": ["1", "2"]}


def test_results_are_read_in_every_form() -> None:
    response = to_http_response(
        {
            "statusCode": 200,
            "headers": {"X-One": "1", "set-cookie": "a=1"},
            "multiValueHeaders": {"X-Two": ["1", "2"]},
            "cookies": ["b=2"],
            "body": base64.b64encode(b"\xff").decode(),
            "isBase64Encoded": True,
        }
    )
    assert response.body == b"\xff"
    assert response.header("x-two") == "1, 2"
    assert response.header("Set-Cookie") == "a=1, b=2"
    assert response.header("x-three") is None


@EVERY_SOURCE
@pytest.mark.parametrize("result", [InvocationError("gone"), {"ignored": "x"}, [1], "text", {"statusCode": "x"}])
def test_a_function_that_fails_or_returns_no_response_is_a_server_error(source: Source, result: Any) -> None:
    assert Gateway(Recorder(result), source=source).send("GET", "/mcp").status == FAILED[source]


@EVERY_SOURCE
def test_bodies_over_the_quota_never_reach_the_function(source: Source) -> None:
    environment = Recorder()
    reply = Gateway(environment, source=source).send("POST", "/mcp", {"content-type": "text/plain"}, b"a" * 6_400_000)
    assert reply.status == 413
    assert environment.events == []


@EVERY_SOURCE
def test_results_over_the_quota_never_reach_the_caller(source: Source) -> None:
    reply = Gateway(Recorder({"statusCode": 200, "body": '"' * 3_200_000}), source=source).send("GET", "/mcp")
    assert reply.status == FAILED[source]
    assert json.loads(reply.body) == {"message": "Internal Server Error"}


@EVERY_SOURCE
def test_api_gateway_renames_www_authenticate_and_the_others_do_not(source: Source) -> None:
    result = {"statusCode": 401, "headers": {"www-authenticate": "Bearer"}}
    reply = Gateway(Recorder(result), source=source).send("GET", "/mcp")
    renamed = "x-amzn-remapped-www-authenticate" if source in ("http_api", "rest_api") else "www-authenticate"
    assert reply.header(renamed) == "Bearer"
