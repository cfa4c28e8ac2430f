"""The same transport as `transport`, for httpx2: the official MCP client 2.x is built on it."""

from collections.abc import Callable
from typing import Any

import anyio.to_thread
import httpx2

from mcp_stateless.testing.environments import Environment
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.gateway import Gateway


class LambdaTransport(httpx2.AsyncBaseTransport, httpx2.BaseTransport):
    """`httpx2.AsyncClient(transport=LambdaTransport(fleet))`, and the same for `httpx2.Client`."""

    def __init__(
        self,
        target: Environment | Callable[..., Any] | object,
        source: Source = "http_api",
        *,
        stage: str = "$default",
        context_ms: int = 30_000,
    ) -> None:
        """`target` is a fleet, an environment, a handler or a server; `context_ms` the function's timeout."""
        self._gateway = Gateway(target, source=source, stage=stage, context_ms=context_ms)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Invoke the function in this thread."""
        return self._send(request, request.read())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Invoke the function in a thread of its own, so that requests can be under way at the same time."""
        body = await request.aread()
        return await anyio.to_thread.run_sync(self._send, request, body, abandon_on_cancel=True)

    def _send(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        reply = self._gateway.send(request.method, str(request.url), request.headers.multi_items(), body)
        return httpx2.Response(reply.status, headers=list(reply.headers), content=reply.body, request=request)
