"""A small synchronous MCP client over Lambda events, for unit tests of a server: no network, no event loop, no SDK."""

import base64
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_stateless.testing.events import Source
from mcp_stateless.testing.gateway import Gateway, HttpResponse

Message = dict[str, Any]

MODERN: Final = "2026-07-28"
CLIENT_INFO: Final = {"name": "mcp-stateless-testing", "version": "1"}
NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that `Mcp-Name` repeats, by method."""
PAGES: Final = 1000
"""A list longer than this never ends."""


class RequestError(Exception):
    """The server answered with a JSON-RPC error, or with a status and no answer at all (`code` is then None)."""

    def __init__(self, code: int | None, message: str, data: object, status: int) -> None:
        """Keep the parts of the error, and the HTTP status it came with."""
        super().__init__(f"{message} (code {code}, HTTP status {status})")
        self.code = code
        self.message = message
        self.data = data
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request, as it was sent, and the notifications that came before it."""

    result: Message
    notifications: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a tool returned."""

    content: list[Message]
    structured_content: Any
    is_error: bool
    notifications: list[Message]
    result: Message
    """The whole result, `_meta` included."""

    @property
    def text(self) -> str:
        """The text blocks, one a line."""
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")


class Client:
    """A client of one server: `Client(server).call_tool("add", {"a": 1, "b": 2}).structured_content`.

    It keeps no state but a counter, so it need not `initialize` first. With `protocol_version="2026-07-28"` it speaks
    the revision that has no handshake at all; headers for `x-mcp-header` parameters are then the test's to give.
    """

    def __init__(
        self,
        target: object,
        *,
        source: Source = "http_api",
        protocol_version: str = "2025-11-25",
        path: str = "/mcp",
        stage: str = "$default",
        headers: Mapping[str, str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        context_ms: int = 30_000,
    ) -> None:
        """`target` is a server, a handler, an environment or a fleet; `headers` go with every request."""
        self.protocol_version = protocol_version
        self._gateway = Gateway(target, source=source, stage=stage, context_ms=context_ms)
        self._url = path if stage == "$default" else f"/{stage}{path}"
        self._headers = dict(headers or {})
        self._capabilities = dict(capabilities or {})
        self._ids = itertools.count(1)

    def initialize(self) -> Message:
        """Shake hands: `initialize`, then `notifications/initialized`. Returns what the server said of itself."""
        params = {
            "protocolVersion": self.protocol_version,
            "capabilities": self._capabilities,
            "clientInfo": CLIENT_INFO,
        }
        result = self.request("initialize", params)
        self.notify("notifications/initialized")
        return result

    def discover(self) -> Message:
        """What the server says of itself since 2026-07-28."""
        return self.request("server/discover")

    def ping(self) -> None:
        """Ask whether the server answers."""
        self.request("ping")

    def list_tools(self) -> list[Message]:
        """All tools, over all pages."""
        return list(self._list("tools/list", "tools"))

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress_token: str | int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> CallResult:
        """Call a tool. A tool that fails is a result with `is_error`; with a `progress_token` it may report progress.

        Raises:
            RequestError: there is no such tool, or the server refused the request.
        """
        params: Message = {"name": name, "arguments": dict(arguments or {})}
        if progress_token is not None:
            params["_meta"] = {"progressToken": progress_token}
        reply = self.exchange("tools/call", params, headers)
        result = reply.result
        return CallResult(
            content=result.get("content", []),
            structured_content=result.get("structuredContent"),
            is_error=result.get("isError", False),
            notifications=reply.notifications,
            result=result,
        )

    def list_resources(self) -> list[Message]:
        """All resources, over all pages."""
        return list(self._list("resources/list", "resources"))

    def list_resource_templates(self) -> list[Message]:
        """All resource templates, over all pages."""
        return list(self._list("resources/templates/list", "resourceTemplates"))

    def read_resource(self, uri: str) -> list[Message]:
        """The contents of a resource."""
        contents: list[Message] = self.request("resources/read", {"uri": uri})["contents"]
        return contents

    def list_prompts(self) -> list[Message]:
        """All prompts, over all pages."""
        return list(self._list("prompts/list", "prompts"))

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Message:
        """A prompt: its description and messages."""
        return self.request("prompts/get", {"name": name, "arguments": dict(arguments or {})})

    def complete(
        self, ref: Mapping[str, str], name: str, value: str, *, arguments: Mapping[str, str] | None = None
    ) -> Message:
        """Complete an argument's value; `arguments` are those chosen before. Returns `values`, `total`, `hasMore`."""
        params: Message = {"ref": dict(ref), "argument": {"name": name, "value": value}}
        if arguments is not None:
            params["context"] = {"arguments": dict(arguments)}
        completion: Message = self.request("completion/complete", params)["completion"]
        return completion

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Message:
        """Send any request; returns its result.

        Raises:
            RequestError: the answer is an error.
        """
        return self.exchange(method, params, headers).result

    def exchange(
        self, method: str, params: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send any request; returns its result with the notifications before it.

        Raises:
            RequestError: the answer is an error.
        """
        message: Message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": self._params(params)}
        response = self._post(message, headers)
        messages = list(_messages(response))
        answer = next((item for item in messages if item.get("id") == message["id"] and "method" not in item), None)
        if answer is None or "error" in answer:
            raise _error(response, answer or (messages[-1] if messages else {}))
        return Reply(answer["result"], [item for item in messages if "method" in item])

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification.

        Raises:
            RequestError: the server did not answer 202 without a body.
        """
        response = self._post({"jsonrpc": "2.0", "method": method, "params": self._params(params)}, None)
        if response.status != 202 or response.body:
            raise _error(response, next(_messages(response), {}))

    def _list(self, method: str, key: str) -> Iterator[Message]:
        cursor: str | None = None
        for _ in range(PAGES):
            result = self.request(method, None if cursor is None else {"cursor": cursor})
            yield from result[key]
            cursor = result.get("nextCursor")
            if cursor is None:
                return
        raise AssertionError(f"{method} did not end after {PAGES} pages")

    def _params(self, params: Mapping[str, Any] | None) -> Message:
        if self.protocol_version < MODERN:
            return dict(params or {})
        mine = {
            "io.modelcontextprotocol/protocolVersion": self.protocol_version,
            "io.modelcontextprotocol/clientCapabilities": self._capabilities,
            "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
        }
        return {**(params or {}), "_meta": mine | dict((params or {}).get("_meta", {}))}

    def _post(self, message: Message, headers: Mapping[str, str] | None) -> HttpResponse:
        fields = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        # The header came with 2025-06-18, and is not sent before the version is agreed on.
        if self.protocol_version >= "2025-06-18" and message["method"] != "initialize":
            fields["mcp-protocol-version"] = self.protocol_version
        if self.protocol_version >= MODERN:
            fields |= _mirrored(message)
        body = json.dumps(message, ensure_ascii=False).encode()
        return self._gateway.send("POST", self._url, fields | self._headers | dict(headers or {}), body)


def _mirrored(message: Message) -> dict[str, str]:
    """The headers that repeat the method and the name of what it is about."""
    fields = {"mcp-method": message["method"]}
    name = message["params"].get(NAMED_BY.get(message["method"], ""))
    if isinstance(name, str):
        fields["mcp-name"] = header_value(name)
    return fields


def header_value(value: str) -> str:
    """A value as a header may carry it: in base64 when it is not plain ASCII, is padded, or looks encoded itself."""
    plain = all(" " <= character <= "~" for character in value) and value == value.strip()
    if plain and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def _messages(response: HttpResponse) -> Iterator[Message]:
    """The JSON-RPC messages of a body: one, a batch, or those of an event stream."""
    if (response.header("content-type") or "").startswith("text/event-stream"):
        yield from (json.loads(data) for data in _event_data(response.body.decode()) if data)
    elif response.body:
        try:
            found = json.loads(response.body)
        except ValueError:
            return
        yield from (item for item in (found if isinstance(found, list) else [found]) if isinstance(item, dict))


def _event_data(stream: str) -> Iterator[str]:
    """The data of each event of an event stream."""
    data: list[str] = []
    for line in stream.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        name, _, value = line.partition(":")
        if not line and data:
            yield "\n".join(data)
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))


def _error(response: HttpResponse, message: Message) -> RequestError:
    error = message.get("error")
    if not isinstance(error, dict):
        return RequestError(None, f"No answer: {response.body[:200].decode(errors='replace')}", None, response.status)
    return RequestError(error.get("code"), error.get("message", ""), error.get("data"), response.status)
