"""Lambda's Invoke API on a local port: asynchronous invocations are queued and handed to a fleet of workers.

What `AWS_ENDPOINT_URL_LAMBDA` may point to where there is no Lambda. Delivery is as on Lambda with retries set to 0:
once, in no particular order; `duplicate` and `lose` make it as bad as Lambda allows.
"""

import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any

from mcp_stateless.testing.environments import Environment, InvocationError
from mcp_stateless.testing.local_server import LocalServer

log = logging.getLogger(__name__)


class InvokeApi(LocalServer):
    """`with InvokeApi(workers, concurrency=2) as api: ... api.environment ...`."""

    def __init__(
        self,
        workers: Environment,
        *,
        concurrency: int = 2,
        context_ms: int = 900_000,
        duplicate: Callable[[], bool] = lambda: False,
        lose: Callable[[], bool] = lambda: False,
    ) -> None:
        """`concurrency`: how many invocations run at once, the function's reserved concurrency."""
        self.invocations = 0
        """Asynchronous invocations accepted so far."""
        self.failures: list[str] = []
        """What invocations died of."""
        self._workers = workers
        self._context_ms = context_ms
        self._duplicate = duplicate
        self._lose = lose
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="mcp-worker")
        self._pending: set[Future[None]] = set()
        self._lock = threading.Lock()
        super().__init__(_handler_class(self._accept))

    @property
    def environment(self) -> dict[str, str]:
        """What sends a function's asynchronous invocations here, whatever account it believes to be in."""
        return {
            "AWS_ENDPOINT_URL_LAMBDA": self.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }

    def wait_until_idle(self, timeout_s: float) -> None:
        """Return when every invocation that was accepted has ended.

        Raises:
            TimeoutError: one still runs.
        """
        with self._lock:
            pending = list(self._pending)
        for future in pending:
            future.result(timeout_s)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _accept(self, payload: object) -> None:
        self.invocations += 1
        if self._lose():
            return
        for _ in range(2 if self._duplicate() else 1):
            future = self._pool.submit(self._invoke, payload)
            with self._lock:
                self._pending.add(future)
            future.add_done_callback(self._forget)

    def _invoke(self, payload: object) -> None:
        try:
            self._workers.invoke(payload, self._context_ms)
        except InvocationError as error:
            log.info("a work invocation failed: %s", error)
            self.failures.append(str(error))

    def _forget(self, future: "Future[None]") -> None:
        with self._lock:
            self._pending.discard(future)


def _handler_class(accept: Callable[[object], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            is_event = self.headers.get("x-amz-invocation-type") == "Event"
            if is_event:
                accept(json.loads(body))
            self.send_response(202 if is_event else 400)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return Handler
