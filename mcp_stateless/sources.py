"""The event sources that carry HTTP to a Lambda function: how each is recognised, what it allows, what its events say.

Pure: an event in, an `HttpRequest` or a `Refusal` out, whatever the event holds. One table, `SOURCES`, has the quotas.
Knows no ASGI application, no Mangum and no clock; the header map, path and body it returns are safe for all of them.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

INVOCATION_BYTES: Final = 6 * 1024 * 1024
"""Lambda, "Invocation payload (request and response)", synchronous: 6 MB. API Gateway itself would take 10 MB."""
RESULT_BYTES: Final = 6_291_556
"""The same quota for the encoded result, as the runtime API enforces it."""
ALB_BYTES: Final = 1024 * 1024
"""Elastic Load Balancing, "Lambda functions as targets": request body and response JSON 1 MB each."""

Event = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of HTTP event and its limits."""

    name: str
    matches: Callable[[Event], bool]
    shape: Literal["v1", "v2", "alb"]
    """Layout of the event and of the result; `v1` is also HTTP API payload 1.0."""
    max_request_bytes: int = INVOCATION_BYTES
    max_response_bytes: int = RESULT_BYTES
    integration_ms: int | None = None
    """When the source gives up on the function. None: it waits as long as the function may run."""
    limit: str = ""
    """That limit, in words for the caller."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What an HTTP event says, tidied."""

    source: Source
    method: str
    path: str
    """Starts with `prefix`, as ASGI wants it: where the caller sees the resource."""
    prefix: str
    """The public path in front of the application (`root_path`): a stage, a base path, or nothing."""
    headers: tuple[tuple[bytes, bytes], ...]
    scheme: str
    server: tuple[str, int]
    client: str | None
    event: dict[str, object]
    """An event of the same shape that holds nothing odd, for the adapter."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP event that no application can be asked about: answered with a JSON-RPC error."""

    status: int
    code: int
    message: str


def _context(event: Event) -> Event:
    context = event.get("requestContext")
    return context if isinstance(context, Mapping) else {}


def _is_version_2(event: Event) -> bool:
    return event.get("version") == "2.0" and isinstance(_context(event).get("http"), Mapping)


def _is_function_url(event: Event) -> bool:
    return _is_version_2(event) and ".lambda-url." in _domain(event)


def _is_http_api_1_0(event: Event) -> bool:
    return event.get("version") == "1.0" and _is_rest_shaped(event)


def _is_alb(event: Event) -> bool:
    return "elb" in _context(event)


def _is_rest_shaped(event: Event) -> bool:
    return isinstance(event.get("requestContext"), Mapping) and "httpMethod" in event


_HTTP_API: Final = "API Gateway HTTP API ends a request after 30 s"
_REST_API: Final = "API Gateway REST API ends a request after 29 s"

SOURCES: Final = (
    Source("function_url", _is_function_url, "v2"),
    # "Maximum integration timeout" of HTTP APIs: 30 s, cannot be raised.
    Source("http_api", _is_version_2, "v2", integration_ms=30_000, limit=_HTTP_API),
    Source("alb", _is_alb, "alb", max_request_bytes=ALB_BYTES, max_response_bytes=ALB_BYTES),
    Source("http_api", _is_http_api_1_0, "v1", integration_ms=30_000, limit=_HTTP_API),
    # "Integration timeout" of REST APIs: 29 s; raisable for Regional and private ones (MCP_GATEWAY_TIMEOUT_MS).
    Source("rest_api", _is_rest_shaped, "v1", integration_ms=29_000, limit=_REST_API),
)
"""Asked in this order. Quotas are the defaults of AWS, by their names there."""


def recognise(event: object) -> Source | None:
    """The row of an event; None when it carries no HTTP request."""
    if not isinstance(event, Mapping):
        return None
    return next((source for source in SOURCES if source.matches(event)), None)


def time_limit(source: Source, remaining_ms: int | None, gateway_ms: int | None) -> tuple[int | None, str]:
    """How long this invocation may take, and what says so: the gateway in front or the function's own timeout."""
    limit_ms, sentence = source.integration_ms, source.limit
    if gateway_ms is not None:
        limit_ms, sentence = gateway_ms, f"the gateway in front ends a request after {gateway_ms / 1000:g} s"
    if remaining_ms is not None and (limit_ms is None or remaining_ms < limit_ms):
        return max(remaining_ms, 0), "the Lambda function's timeout ends the invocation"
    return limit_ms, sentence


def normalise(source: Source, event: Event, base_path: str = "") -> HttpRequest | Refusal:
    """Read an event of that source. `base_path` is the configured public prefix; see `public_prefix`."""
    method = _context_http(event).get("method") if source.shape == "v2" else event.get("httpMethod")
    headers = _headers(event)
    body = _body(event)
    if not isinstance(method, str) or not method.isalpha() or not method.isascii():
        return Refusal(400, -32600, "The event names no HTTP method")
    if headers is None:
        return Refusal(400, -32600, "The headers of the request cannot be read")
    if body is None:
        return Refusal(400, -32700, "The body of the request is not valid base64 text")
    path, prefix = public_prefix(source, event, base_path)
    fields = dict(headers)
    scheme = "http" if fields.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "http" else "https"
    return HttpRequest(
        source=source,
        method=method.upper(),
        path=prefix + path,
        prefix=prefix,
        headers=tuple((name.encode(), value.encode()) for name, value in headers),
        scheme=scheme,
        server=_server(fields.get("host", ""), fields.get("x-forwarded-port", ""), 80 if scheme == "http" else 443),
        client=_client(source, event, fields),
        event=_tidy_event(source, event, method.upper(), body),
    )


def public_prefix(source: Source, event: Event, base_path: str = "") -> tuple[str, str]:
    """The path as the application's routes know it, and the public prefix in front of it. Whole segments only.

    The event's path may hold a stage (HTTP API) or a custom domain's base path (REST API), or lack a stage that the
    caller sees (REST API). The route that matched tells most of it; `base_path` is for what no event tells: the base
    path of a custom domain of an HTTP API, or the path behind which a proxy in front serves the function.
    """
    path = _path(source, event)
    stage = _stage(source, event, path)
    inside = _route_prefix(event, path) or stage
    if _begins(path[len(inside) :], base_path):
        inside += base_path
    public = inside
    if source.shape == "v1":
        public = _stage_before(event, path) + inside
    elif source.name == "http_api" and _is_custom_domain(event):
        # The stage in the path is the mapping's target; the caller never wrote it.
        public = (inside.removeprefix(stage) if _begins(inside, stage) else inside) or base_path
    return path[len(inside) :] or "/", public


def _context_http(event: Event) -> Event:
    http = _context(event).get("http")
    return http if isinstance(http, Mapping) else {}


def _domain(event: Event) -> str:
    return text(_context(event).get("domainName"))


def _is_custom_domain(event: Event) -> bool:
    domain = _domain(event)
    return bool(domain) and ".execute-api." not in domain


def _path(source: Source, event: Event) -> str:
    given = event.get("rawPath") or _context_http(event).get("path") if source.shape == "v2" else event.get("path")
    path = text(unquote(text(given)))
    return path if path.startswith("/") else "/" + path


def _begins(path: str, prefix: str) -> bool:
    return bool(prefix) and (path == prefix or path.startswith(prefix + "/"))


def _stage(source: Source, event: Event, path: str) -> str:
    """The stage as HTTP APIs put it in front of the path; `$default` never is."""
    stage = "/" + text(_context(event).get("stage"))
    return stage if source.name == "http_api" and stage != "/" and _begins(path, stage) else ""


def _stage_before(event: Event, path: str) -> str:
    """What stands before `path` in the path the caller used, as version 1 events tell it: the stage."""
    full = unquote(text(_context(event).get("path")))
    return full.rstrip("/").removesuffix(path.rstrip("/")) if full.rstrip("/").endswith(path.rstrip("/")) else ""


def _route_prefix(event: Event, path: str) -> str:
    """What stands before the path that the matched route describes; nothing when the event names no such route."""
    route = text(event.get("resource")) or text(event.get("routeKey")).partition(" ")[2]
    if len(route) < 2 or not route.startswith("/"):
        return ""
    given = event.get("pathParameters")
    parameters: Event = given if isinstance(given, Mapping) else {}
    parts = re.split(r"\{([^}]*)\}", route)
    if any(not text(parameters.get(name.rstrip("+"))) for name in parts[1::2]):
        return ""
    filled = "".join(
        unquote(text(parameters[part.rstrip("+")])) if position % 2 else part for position, part in enumerate(parts)
    )
    seen, described = path.rstrip("/"), filled.rstrip("/")
    return seen.removesuffix(described) if described and seen.endswith(described) else ""


def text(value: object) -> str:
    """A value of an event as a string that can be encoded: lone surrogates replaced, nothing for what is no scalar."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else ""


def _values(value: object) -> list[str]:
    """The values of one header or query parameter: one, several, or none for null."""
    several = value if isinstance(value, list | tuple) else [value]
    return [text(item) for item in several if isinstance(item, str | int | float)]


def _headers(event: Event) -> list[tuple[str, str]] | None:
    """Every header once, by its lower-case name. None: the map is no map."""
    found: dict[str, list[str]] = {}
    for key in ("headers", "multiValueHeaders"):
        given = event.get(key)
        if given is not None and not isinstance(given, Mapping):
            return None
        # Version 1 events say everything twice; the map with all the values wins.
        found |= _fields(given or {})
    cookies = _values(event.get("cookies")) if event.get("cookies") else []
    if cookies:
        found["cookie"] = cookies
    return [(name, ("; " if name == "cookie" else ", ").join(values)) for name, values in found.items()]


def _fields(given: Event) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in given.items():
        values = _values(value)
        if values and text(name):
            found.setdefault(text(name).lower(), []).extend(values)
    return found


def _body(event: Event) -> bytes | None:
    """The bytes of the body; None when it is not what the event claims."""
    body = event.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        return None
    if text(event.get("isBase64Encoded")).lower() != "true":
        # What is not text stays an invalid byte sequence, and so a parse error, instead of an exception here.
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _server(host: str, forwarded_port: str, default: int) -> tuple[str, int]:
    """Name and port of the server; odd values cost the port, never the request."""
    name, colon, port = host.rpartition(":")
    if not colon or (":" in name and not (name.startswith("[") and name.endswith("]"))):
        name, port = host, forwarded_port
    number = int(port) if re.fullmatch(r"[0-9]{1,5}", port) else default
    return name.strip("[]") or "localhost", number


def _client(source: Source, event: Event, fields: Mapping[str, str]) -> str | None:
    """The address of the caller as the source saw it, never as a header claims it."""
    if source.shape == "v2":
        return text(_context_http(event).get("sourceIp")) or None
    if source.shape == "alb":
        # A load balancer appends the peer to what the caller sent.
        return fields.get("x-forwarded-for", "").rpartition(",")[2].strip() or None
    identity = _context(event).get("identity")
    return text(identity.get("sourceIp")) or None if isinstance(identity, Mapping) else None


def _query(given: object) -> dict[str, list[str]]:
    if not isinstance(given, Mapping):
        return {}
    return {text(name): values for name, value in given.items() if (values := _values(value))}


def _tidy_event(source: Source, event: Event, method: str, body: bytes) -> dict[str, object]:
    """What the adapter needs of an event to build a scope and to shape the result; the rest is set on the scope."""
    tidy: dict[str, object] = {"headers": {}, "body": body, "isBase64Encoded": False}
    if source.shape == "v2":
        http = {"method": method, "path": "/", "sourceIp": ""}
        return tidy | {
            "version": "2.0",
            "rawQueryString": text(event.get("rawQueryString")),
            "requestContext": {"http": http},
        }
    query = _query(event.get("multiValueQueryStringParameters")) or _query(event.get("queryStringParameters"))
    tidy |= {"httpMethod": method, "path": "/", "resource": "/", "multiValueQueryStringParameters": query}
    if source.shape == "v1":
        version = {"version": "1.0"} if source.name == "http_api" else {}
        return tidy | {"requestContext": {}} | version
    # A target group answers with the kind of header map that it sends.
    if isinstance(event.get("multiValueHeaders"), Mapping):
        tidy["multiValueHeaders"] = {}
    return tidy | {"requestContext": {"elb": {}}}
