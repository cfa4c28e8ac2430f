"""What goes wrong on Lambda, on purpose: killed and frozen environments, a store that throttles."""

import json
import random
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_stateless.testing import Environment, InvocationError
from mcp_stateless.testing.events import lambda_context
from mcp_stateless.testing.local_server import LocalServer
from tests.emulator.runtime import RuntimeEmulator

THROTTLED: Final = json.dumps(
    {
        "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        "message": "The level of configured provisioned throughput for the table was exceeded",
    }
).encode()


class Dice:
    """A seeded chance, safe to ask from many threads."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def chance(self, probability: float) -> bool:
        with self._lock:
            return self._random.random() < probability

    def seconds(self, low: float, high: float) -> float:
        with self._lock:
            return self._random.uniform(low, high)


class Mortal:
    """A worker environment that is killed in the middle of some invocations."""

    def __init__(self, environment: RuntimeEmulator, dice: Dice, probability: float, within_s: float) -> None:
        self._environment = environment
        self._dice = dice
        self._probability = probability
        self._within_s = within_s

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        if not self._dice.chance(self._probability):
            return self._environment.invoke(event, context_ms)
        timer = threading.Timer(self._dice.seconds(0, self._within_s), self._environment.kill)
        timer.start()
        try:
            return self._environment.invoke(event, context_ms)
        finally:
            timer.cancel()


class Freezing:
    """An HTTP environment that stands still in the middle of some invocations, and goes on later."""

    def __init__(self, environment: RuntimeEmulator, dice: Dice, probability: float, for_s: float) -> None:
        self._environment = environment
        self._dice = dice
        self._probability = probability
        self._for_s = for_s

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        if not self._dice.chance(self._probability):
            return self._environment.invoke(event, context_ms)
        thread = threading.Thread(target=self._stand_still, args=(self._dice.seconds(0, 0.01),))
        thread.start()
        try:
            return self._environment.invoke(event, context_ms)
        finally:
            thread.join()

    def _stand_still(self, after_s: float) -> None:
        threading.Event().wait(after_s)
        self._environment.pause()
        threading.Event().wait(self._for_s)
        self._environment.resume()


class Reported:
    """Workers whose failed invocations are reported to the server, as the template's OnFailure destination does."""

    def __init__(self, workers: Environment, server: Environment, dice: Dice, probability: float = 1.0) -> None:
        """`probability`: how many of the reports arrive."""
        self._workers = workers
        self._server = server
        self._dice = dice
        self._probability = probability

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        try:
            return self._workers.invoke(event, context_ms)
        except InvocationError as error:
            if self._dice.chance(self._probability):
                self._server.invoke(_failure_record(event, error))
            raise


def _failure_record(event: object, error: InvocationError) -> dict[str, Any]:
    """What Lambda sends to a destination."""
    return {
        "version": "1.0",
        "timestamp": "2026-11-30T12:00:00.000Z",
        "requestContext": {
            "requestId": lambda_context().aws_request_id,
            "functionArn": "arn:aws:lambda:us-east-1:123456789012:function:worker:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": 1,
        },
        "requestPayload": event,
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": {"errorMessage": str(error)[:1000]},
    }


class ThrottlingProxy(LocalServer):
    """In front of a DynamoDB engine: some requests are answered that there are too many. `with` it, it serves."""

    def __init__(self, url: str, dice: Dice, probability: float) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self.requests = 0
        self.throttled = 0
        self.probability = probability
        self._dice = dice
        self._engine = (address.hostname, address.port)
        super().__init__(_handler_class(self))

    def answer(self, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.requests += 1
        if self._dice.chance(self.probability):
            self.throttled += 1
            return 400, {"content-type": "application/x-amz-json-1.0"}, THROTTLED
        connection = HTTPConnection(*self._engine, timeout=10)
        try:
            connection.request("POST", "/", body, headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()


NOT_PASSED_ON: Final = frozenset({"connection", "content-length", "transfer-encoding", "date", "server"})


def _handler_class(proxy: ThrottlingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED_ON}
            status, headers, answer = proxy.answer(asked, body)
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Stay quiet: there are thousands."""

    return Handler
