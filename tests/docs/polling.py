"""One long call on the wire, as a client at 2025-11-25 makes it: a POST, then GETs as told, then the result."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_stateless import MCPServer
from mcp_stateless.testing.transport_httpx2 import LambdaTransport

SECONDS: Final = 30


@dataclass(slots=True)
class Outcome:
    """What came of the call, and what it took."""

    structured_content: Any
    progress: list[float]
    gets: int
    priming: bytes
    """The body that the POST of the call was answered with."""


class Watched(LambdaTransport):
    """Keeps what the server answered, on the way to the client."""

    def __init__(self, server: MCPServer) -> None:
        super().__init__(server)
        self.polls = 0
        self.priming = b""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if request.method == "GET" and "last-event-id" in request.headers:
            self.polls += 1
        elif response.headers.get("content-type") == "text/event-stream":
            self.priming = await response.aread()
        return response


def call_and_poll(server: MCPServer, name: str, arguments: dict[str, Any], mode: str = "legacy") -> Outcome:
    """Let the official client call a long-running tool; it waits between its polls as the server tells it."""
    reported: list[float] = []

    async def seen(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    async def main() -> Outcome:
        transport = Watched(server)
        async with (
            httpx2.AsyncClient(transport=transport) as http,
            Client(streamable_http_client("https://mcp.example.com/mcp", http_client=http), mode=mode) as client,
        ):
            result = await client.call_tool(name, arguments, progress_callback=seen)
            return Outcome(result.structured_content, reported, transport.polls, transport.priming)

    return asyncio.run(asyncio.wait_for(main(), SECONDS))
