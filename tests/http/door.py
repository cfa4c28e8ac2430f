"""The door of these tests: requests as Lambda events into a server's handler, answers as the caller reads them."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_stateless import MCPServer
from mcp_stateless.testing import events, lambda_context
from mcp_stateless.testing.client import header_value
from mcp_stateless.testing.gateway import to_http_response

JsonObject = dict[str, Any]
Handler = Callable[[Any, Any], JsonObject]
Weight = Callable[[MCPServer], Handler]

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
FORMS: Final[JsonObject] = {"elicitation": {}}
"""Client capabilities that take forms."""

BOTH: Final = "application/json, text/event-stream"
JSON_HEADERS: Final = {"content-type": "application/json", "accept": BOTH}
MIRRORED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> JsonObject:
        message = self.json
        assert "result" in message, message
        assert "error" not in message
        found: JsonObject = message["result"]
        return found

    @property
    def error(self) -> JsonObject:
        message = self.json
        assert "error" in message, message
        assert "result" not in message
        found: JsonObject = message["error"]
        return found

    @property
    def text(self) -> str:
        """The text blocks of a tool's result."""
        return "\n".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def stream(self) -> list[JsonObject]:
        """The messages of an event stream."""
        assert self.headers["content-type"] == "text/event-stream", self
        blocks = self.body.decode().removesuffix("\n\n").split("\n\n")
        return [json.loads(block.removeprefix("data: ")) for block in blocks]


class Door:
    """One server behind one kind of event. `context_ms` is the function's timeout."""

    def __init__(self, handler: Handler, source: str = "http_api", context_ms: int = 30_000, **event: Any) -> None:
        self._handler = handler
        self._build = getattr(events, f"{source}_event")
        self._context_ms = context_ms
        self._event = event

    def send(
        self, method: str, path: str = "/mcp", headers: Mapping[str, str] | None = None, body: object = None
    ) -> Answer:
        event = self._build(method, path, dict(headers or {}), body, **self._event)
        response = to_http_response(self._handler(event, lambda_context(self._context_ms)))
        return Answer(response.status, dict(response.headers), response.body)

    def post(self, body: object, headers: Mapping[str, str | None] | None = None, path: str = "/mcp") -> Answer:
        """POST anything; a header that is None is left out."""
        given: dict[str, str | None] = {**JSON_HEADERS, **(headers or {})}
        fields = {name: value for name, value in given.items() if value is not None}
        return self.send("POST", path, fields, body)

    def legacy(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        version: str | None = "2025-11-25",
        headers: Mapping[str, str | None] | None = None,
        request_id: Any = 1,
    ) -> Answer:
        message = request(method, params, request_id)
        return self.post(message, {"mcp-protocol-version": version, **(headers or {})})

    def modern(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        capabilities: JsonObject | None = None,
        meta: JsonObject | None = None,
        headers: Mapping[str, str | None] | None = None,
        request_id: Any = 1,
    ) -> Answer:
        full = {**(params or {}), "_meta": {**modern_meta(capabilities), **(meta or {})}}
        return self.post(request(method, full, request_id), {**modern_headers(method, full), **(headers or {})})

    def call(self, name: str, arguments: JsonObject | None = None, **options: Any) -> Answer:
        """A legacy `tools/call`."""
        return self.legacy("tools/call", {"name": name, "arguments": arguments or {}}, **options)


def request(method: str, params: JsonObject | None = None, request_id: Any = 1) -> JsonObject:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def initialize(version: Any) -> JsonObject:
    client = {"name": "c", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client}


def modern_meta(capabilities: JsonObject | None = None) -> JsonObject:
    return {META_VERSION: MODERN, META_CAPABILITIES: capabilities or {}}


def modern_headers(method: str, params: JsonObject) -> dict[str, str]:
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    name = params.get(MIRRORED.get(method, ""))
    return {**headers, "mcp-name": header_value(name)} if isinstance(name, str) else headers


async def asgi(app: Any, message: JsonObject, headers: Mapping[str, str] | None = None) -> Answer:
    """POST to an ASGI application: for requests that must be under way at the same time, which Lambda never has."""
    fields = {**JSON_HEADERS, **(headers or {})}
    scope: JsonObject = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "client": ("192.0.2.1", 0),
        "server": ("localhost", 443),
    }
    sent: list[JsonObject] = []

    async def receive() -> JsonObject:
        return {"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}

    async def send(event: JsonObject) -> None:
        sent.append(event)

    await asyncio.wait_for(app(scope, receive, send), 10)
    start, *chunks = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, b"".join(chunk.get("body", b"") for chunk in chunks))
