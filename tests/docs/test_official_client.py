"""The official Python client in front of Lambda events."""

# region official
import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from docs.examples.weather import server
from mcp_stateless.testing.transport_httpx2 import LambdaTransport


async def tool_names() -> list[str]:
    async with (
        httpx2.AsyncClient(transport=LambdaTransport(server)) as http,
        Client(streamable_http_client("https://mcp.example.com/mcp", http_client=http)) as client,
    ):
        return [tool.name for tool in (await client.list_tools()).tools]


def test_the_official_client_reaches_the_server_through_lambda_events() -> None:
    assert asyncio.run(tool_names()) == ["forecast"]


# endregion
