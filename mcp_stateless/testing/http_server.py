"""A local port in front of Lambda events: whatever speaks HTTP can talk to a fleet of execution environments."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from mcp_stateless.testing.environments import Environment
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.gateway import Gateway
from mcp_stateless.testing.local_server import LocalServer


class HttpServer(LocalServer):
    """`with HttpServer(fleet) as server: ... server.url ...`: it serves while the context is open."""

    def __init__(
        self,
        target: Environment | Callable[..., Any] | object,
        source: Source = "http_api",
        *,
        stage: str = "$default",
        host: str = "127.0.0.1",
        port: int = 0,
        context_ms: int = 30_000,
    ) -> None:
        """Take the port (0: a free one). `context_ms` is the function's timeout."""
        gateway = Gateway(target, source=source, stage=stage, context_ms=context_ms)
        super().__init__(_handler_class(gateway), host, port)
        self._stage = stage

    @property
    def url(self) -> str:
        """Where it listens, the stage included."""
        return super().url if self._stage == "$default" else f"{super().url}/{self._stage}"


def _handler_class(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            reply = gateway.send(self.command, self.path, self.headers.items(), body)
            self.send_response(reply.status)
            for name, value in reply.headers:
                if name != "content-length":
                    self.send_header(name, value)
            if reply.status not in (204, 304):
                self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        do_GET = do_POST = do_DELETE = do_OPTIONS = do_HEAD = do_PUT = do_PATCH = answer

        def log_message(self, format: str, *args: Any) -> None:
            """Stay quiet: the function logs its own requests."""

    return Handler
