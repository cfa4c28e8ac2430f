"""An httpx transport that turns every request into a Lambda event: for real MCP clients built on httpx."""

from collections.abc import Callable
from typing import Any

import anyio.to_thread
import httpx

from mcp_stateless.testing.environments import Environment
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.gateway import Gateway


class LambdaTransport(httpx.AsyncBaseTransport, httpx.BaseTransport):
    """`httpx.AsyncClient(transport=LambdaTransport(fleet))`, and the same for `httpx.Client`."""

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

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Invoke the function in this thread."""
        return self._send(request, request.read())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Invoke the function in a thread of its own, so that requests can be under way at the same time."""
        body = await request.aread()
        return await anyio.to_thread.run_sync(self._send, request, body, abandon_on_cancel=True)

    def _send(self, request: httpx.Request, body: bytes) -> httpx.Response:
        reply = self._gateway.send(request.method, str(request.url), request.headers.multi_items(), body)
        return httpx.Response(reply.status, headers=list(reply.headers), content=reply.body, request=request)
