"""The events that API Gateway, function URLs and load balancers send, and the invocation's context.

Every builder takes the path as the application knows it and puts stage and base path where that source has them.
"""

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal
from urllib.parse import parse_qsl

Source = Literal["http_api", "rest_api", "function_url", "alb"]
Headers = Mapping[str, str] | Iterable[tuple[str, str]]
Body = str | bytes | Mapping[str, Any] | list[Any] | None
Event = dict[str, Any]

ACCOUNT: Final = "123456789012"
REGION: Final = "us-east-1"
API_DOMAIN: Final = f"abc123.execute-api.{REGION}.amazonaws.com"
URL_DOMAIN: Final = f"abc123.lambda-url.{REGION}.on.aws"
ALB_DOMAIN: Final = f"mcp-123456789.{REGION}.elb.amazonaws.com"
SOURCE_IP: Final = "192.0.2.1"
TIME: Final = ("30/Nov/2026:12:00:00 +0000", 1_796_040_000_000)
"""When every event is said to have come: the same text and milliseconds each time, so that events compare equal."""
TEXT_TYPES: Final = ("text/", "application/json", "application/xml", "application/javascript")
"""Content types whose bodies arrive as text; all others, and bodies without a type, arrive in base64."""

JSON_HEADERS: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class LambdaContext:
    """The context of an invocation, with the attributes of the real one and a clock that a test may set."""

    function_version = "$LATEST"
    identity = None
    client_context = None
    tenant_id = None

    def __init__(self, remaining_ms: int, function_name: str, request_id: str, clock: Callable[[], float]) -> None:
        """Start counting: `clock` gives seconds."""
        self.function_name = function_name
        self.aws_request_id = request_id
        self.invoked_function_arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function_name}"
        self.memory_limit_in_mb = "256"
        self.log_group_name = f"/aws/lambda/{function_name}"
        self.log_stream_name = "2026/11/30/[$LATEST]0123456789abcdef0123456789abcdef"
        self._clock = clock
        self._end = clock() + remaining_ms / 1000

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function's timeout, never below zero."""
        return max(int((self._end - self._clock()) * 1000), 0)


def lambda_context(
    remaining_ms: int = 30_000,
    *,
    function_name: str = "mcp-server",
    request_id: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> LambdaContext:
    """Make a context that has `remaining_ms` left; `clock` gives seconds, and a test may turn it by hand."""
    return LambdaContext(remaining_ms, function_name, request_id or str(uuid.uuid4()), clock)


def http_api_event(
    method: str = "POST",
    path: str = "/mcp",
    headers: Headers = (),
    body: Body = None,
    *,
    query: str = "",
    stage: str = "$default",
    route: str = "$default",
    path_parameters: Mapping[str, str] | None = None,
    domain: str = API_DOMAIN,
    authorizer: Mapping[str, Any] | None = None,
) -> Event:
    """Make an event of an API Gateway HTTP API, payload 2.0. A named stage stands in front of its path."""
    raw_path = path if stage == "$default" else f"/{stage}{path}"
    return _version_2(method, raw_path, headers, body, query, stage, route, path_parameters, domain, authorizer)


def function_url_event(
    method: str = "POST",
    path: str = "/mcp",
    headers: Headers = (),
    body: Body = None,
    *,
    query: str = "",
    domain: str = URL_DOMAIN,
    authorizer: Mapping[str, Any] | None = None,
) -> Event:
    """Make an event of a function URL. `authorizer` is what IAM says of the caller, when it asks IAM."""
    event = _version_2(method, path, headers, body, query, "$default", "$default", None, domain, authorizer)
    event["requestContext"] |= {"authentication": None, "accountId": ACCOUNT if authorizer else "anonymous"}
    return event


def rest_api_event(
    method: str = "POST",
    path: str = "/mcp",
    headers: Headers = (),
    body: Body = None,
    *,
    query: str = "",
    stage: str = "prod",
    base_path: str = "",
    resource: str = "/{proxy+}",
    domain: str = API_DOMAIN,
    authorizer: Mapping[str, Any] | None = None,
) -> Event:
    """Make an event of an API Gateway REST API, or of an HTTP API with payload 1.0 when `version` is added to it.

    The stage is only in `requestContext.path`. `base_path` is the mapping of a custom domain: then no stage is seen.
    Header names keep the case they were sent in.
    """
    pairs = _with_host(headers, domain, lower=False)
    parameters = parse_qsl(query, keep_blank_values=True)
    text, is_base64 = _rest_body(body)
    context_path = f"{base_path}{path}" if base_path else f"/{stage}{path}"
    return {
        "resource": "/" if path == "/" else resource,
        "path": f"{base_path}{path}",
        "httpMethod": method,
        "headers": dict(pairs) or None,
        "multiValueHeaders": _grouped(pairs) or None,
        "queryStringParameters": dict(parameters) or None,
        "multiValueQueryStringParameters": _grouped(parameters) or None,
        "pathParameters": {"proxy": path[1:]} if "{proxy+}" in resource and path != "/" else None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": domain.partition(".")[0],
            **({"authorizer": dict(authorizer)} if authorizer else {}),
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
            "extendedRequestId": "request-id=",
            "httpMethod": method,
            "identity": {"sourceIp": SOURCE_IP, "userAgent": _field(pairs, "user-agent"), "user": None},
            "path": context_path,
            "protocol": "HTTP/1.1",
            "requestId": "00000000-0000-4000-8000-000000000000",
            "requestTime": TIME[0],
            "requestTimeEpoch": TIME[1],
            "resourceId": "123456",
            "resourcePath": "/" if path == "/" else resource,
            "stage": stage,
        },
        "body": text,
        "isBase64Encoded": is_base64,
    }


def alb_event(
    method: str = "POST",
    path: str = "/mcp",
    headers: Headers = (),
    body: Body = None,
    *,
    query: str = "",
    multi_value: bool = False,
    domain: str = ALB_DOMAIN,
) -> Event:
    """Make an event of an Application Load Balancer; `multi_value` is the target group's attribute.

    Query parameters stay as they were sent, percent signs and all.
    """
    pairs = _with_host(headers, domain, lower=True)
    split = [tuple(part.partition("=")[::2]) for part in query.split("&") if part]
    parameters = [(str(name), str(value)) for name, value in split]
    text, is_base64 = _encoded(body, _field(pairs, "content-type"))
    arn = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:targetgroup/mcp/0123456789abcdef"
    maps: Event = (
        {"multiValueQueryStringParameters": _grouped(parameters), "multiValueHeaders": _grouped(pairs)}
        if multi_value
        else {"queryStringParameters": dict(parameters), "headers": dict(pairs)}
    )
    context = {"elb": {"targetGroupArn": arn}}
    return (
        {"requestContext": context, "httpMethod": method, "path": path}
        | maps
        | {
            "body": text or "",
            "isBase64Encoded": is_base64,
        }
    )


def _version_2(
    method: str,
    raw_path: str,
    headers: Headers,
    body: Body,
    query: str,
    stage: str,
    route: str,
    path_parameters: Mapping[str, str] | None,
    domain: str,
    authorizer: Mapping[str, Any] | None,
) -> Event:
    pairs = _with_host(headers, domain, lower=True)
    cookies = [part.strip() for name, value in pairs if name == "cookie" for part in value.split(";")]
    fields = {name: ",".join(values) for name, values in _grouped(pairs).items() if name != "cookie"}
    parameters = _grouped(parse_qsl(query, keep_blank_values=True))
    text, is_base64 = _encoded(body, fields.get("content-type", ""))
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": raw_path,
        "rawQueryString": query,
        **({"cookies": cookies} if cookies else {}),
        "headers": fields,
        **({"queryStringParameters": {k: ",".join(v) for k, v in parameters.items()}} if parameters else {}),
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": domain.partition(".")[0],
            **({"authorizer": dict(authorizer)} if authorizer else {}),
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
            "http": {
                "method": method,
                "path": raw_path,
                "protocol": "HTTP/1.1",
                "sourceIp": SOURCE_IP,
                "userAgent": fields.get("user-agent", ""),
            },
            "requestId": "request-id=",
            "routeKey": route,
            "stage": stage,
            "time": TIME[0],
            "timeEpoch": TIME[1],
        },
        **({"pathParameters": dict(path_parameters)} if path_parameters else {}),
        **({"body": text} if text is not None else {}),
        "isBase64Encoded": is_base64,
    }


def _with_host(headers: Headers, domain: str, *, lower: bool) -> list[tuple[str, str]]:
    """The headers as a source hands them on: its own `Host` and `X-Forwarded-*` beside the caller's."""
    given = list(headers.items() if isinstance(headers, Mapping) else headers)
    mine = [
        ("Host", domain),
        ("X-Forwarded-For", SOURCE_IP),
        ("X-Forwarded-Port", "443"),
        ("X-Forwarded-Proto", "https"),
    ]
    sent = {name.lower() for name, _ in given}
    pairs = given + [(name, value) for name, value in mine if name.lower() not in sent]
    return [(name.lower() if lower else name, value) for name, value in pairs]


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    return groups


def _field(pairs: Iterable[tuple[str, str]], wanted: str) -> str:
    return next((value for name, value in pairs if name.lower() == wanted), "")


def _content(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()


def _encoded(body: Body, content_type: str) -> tuple[str | None, bool]:
    """A body in the event: text or base64, by its type."""
    if body is None or body in ("", b""):
        return None, False
    content = _content(body)
    if content_type.lower().startswith(TEXT_TYPES):
        try:
            return content.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(content).decode(), True


def _rest_body(body: Body) -> tuple[str | None, bool]:
    """A REST API without binary media types takes every body for text."""
    return (None, False) if body is None or body in ("", b"") else (_content(body).decode("utf-8", "replace"), False)
