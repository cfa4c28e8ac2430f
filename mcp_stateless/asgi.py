"""What the endpoint needs of ASGI: requests read within limits, responses written whole."""

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mcp_stateless.invocation import Invocation
from mcp_stateless.protocol import envelope, sse
from mcp_stateless.protocol.inbound import Refused
from mcp_stateless.protocol.media import JSON

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RESULT_OVERHEAD: Final = 2048
"""Bytes left for what surrounds the body in the invocation result: status, headers, field names."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response. An empty body goes out without a content type."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(refused: Refused, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON-RPC error as a response."""
    body = envelope.encode(envelope.error_message(refused.id, refused.error))
    return Reply(refused.status, body, headers=headers or {})


async def send_reply(reply: Reply, send: Send, more: Mapping[str, str] | None = None) -> None:
    """Write a response, with `more` headers of the endpoint's own."""
    headers = {**reply.headers, **(more or {})}
    if reply.body:
        headers = {"content-type": reply.content_type, "cache-control": "no-store", **headers}
        if reply.content_type == sse.CONTENT_TYPE:
            # A proxy in front must not collect events (2026-07-28, Streamable HTTP).
            headers["x-accel-buffering"] = "no"
    headers["content-length"] = str(len(reply.body))
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": fields})
    await send({"type": "http.response.body", "body": reply.body})


async def read_body(headers: Mapping[str, str], receive: Receive, limit: int) -> bytes | None:
    """The body, or None as soon as it is over the limit."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        return None
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        chunk = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            return None
        more = message.get("more_body", False)
    return b"".join(chunks)


def headers_of(scope: Scope) -> dict[str, str]:
    """Lower-case names; values of repeated fields are joined by commas and trimmed, as RFC 9110 wants it."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def fits(body: bytes, invocation: Invocation) -> bool:
    """Whether the reply stays under the platform's limit, measured where it applies: as a JSON string in the result.

    Escaped to ASCII, as the older runtimes write it; there each byte of JSON text becomes three characters at most.
    """
    limit = invocation.max_response_bytes
    if limit is None or len(body) * 3 + RESULT_OVERHEAD <= limit:
        return True
    return len(json.dumps(body.decode())) + RESULT_OVERHEAD <= limit


async def lifespan(receive: Receive, send: Send) -> None:
    """Agree to whatever a server asks: there is nothing to start or to stop."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
