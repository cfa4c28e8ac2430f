"""A local port in front of Lambda events: whatever speaks HTTP can talk to a fleet of execution environments."""

import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from mcp_stateless.testing.environments import Environment
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.gateway import Gateway


class HttpServer:
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
        self._server = _Server((host, port), _handler_class(gateway))
        self._stage = stage

    @property
    def url(self) -> str:
        """Where it listens, the stage included."""
        host, port = self._server.server_address[:2]
        prefix = "" if self._stage == "$default" else f"/{self._stage}"
        return f"http://{host!s}:{port}{prefix}"

    def serve_forever(self) -> None:
        """Serve until the process is interrupted."""
        self._server.serve_forever(poll_interval=0.1)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is its own affair; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    daemon_threads = True
    # Many clients connect at once in a test; the default queue holds five.
    request_queue_size = 128


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
