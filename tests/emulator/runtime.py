"""`RuntimeEmulator`: one execution environment of a code directory, as Lambda runs it, on this machine."""

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from mcp_stateless.testing import InvocationError

from . import tools

PATH: Final = "/2015-03-31/functions/function/invocations"
START_SECONDS: Final = 20
PATIENCE_SECONDS: Final = 10
"""How much longer than the function's timeout an answer may take: the emulator ends the function itself."""


class RuntimeEmulator:
    """A runtime behind the emulator. Invocations wait for each other; between them the runtime is frozen.

    The emulator starts with the context; the runtime, and the handler's import, with the first invocation, and again
    after a timeout or a crash, as on Lambda.
    """

    def __init__(
        self,
        code_dir: Path,
        handler: str,
        *,
        python: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: int = 10,
        memory_mb: int = 256,
        freeze: bool = True,
        output: IO[bytes] | None = None,
    ) -> None:
        """`handler` is `module.attribute`; `python` has the runtime client and is of the version the code is for.

        What the function and the emulator print goes to `output`, by default to standard error.

        Unlike Lambda, the emulator counts the start of the runtime against `timeout_s`.
        """
        self._python = python or tools.runtime_python()
        self._emulator = tools.emulator()
        self._code_dir = code_dir
        self._handler = handler
        self._env = _environment(code_dir, handler, self._python, timeout_s, memory_mb) | dict(env or {})
        self._timeout_s = timeout_s
        self._freeze = freeze
        self._output = output
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._port, api_port = _free_ports()
        command = [str(self._emulator), "--log-level", "error"]
        command += ["--runtime-interface-emulator-address", f"127.0.0.1:{self._port}"]
        command += ["--runtime-api-address", f"127.0.0.1:{api_port}"]
        command += [str(self._python), "-m", "awslambdaric", self._handler]
        output = 2 if self._output is None else self._output
        self._process = subprocess.Popen(command, cwd=self._code_dir, env=self._env, stdout=output, stderr=output)
        _wait_for(self._port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        """Run one invocation; the function's own timeout counts, `context_ms` only says how long to wait for it.

        Raises:
            InvocationError: it raised, timed out or crashed; the text says which.
        """
        with self._one_at_a_time:  # the emulator dies of two requests at once
            self._signal_runtime(signal.SIGCONT)
            try:
                status, body = self._post(json.dumps(event).encode())
            finally:
                if self._freeze:
                    self._signal_runtime(signal.SIGSTOP)
        return _result(status, body)

    def kill(self) -> None:
        """Kill the runtime, not the emulator: what running out of memory looks like."""
        self._signal_runtime(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze the runtime in the middle of whatever it does."""
        self._signal_runtime(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen runtime go on."""
        self._signal_runtime(signal.SIGCONT)

    def runtime_pids(self) -> list[int]:
        """The processes of the runtime; none before the first invocation and after a crash."""
        return [] if self._process is None else _descendants(self._process.pid)

    def close(self) -> None:
        """End the emulator and the runtime."""
        process, self._process = self._process, None
        if process is None:
            return
        for pid in _descendants(process.pid):
            _signal(pid, signal.SIGKILL)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _signal_runtime(self, number: signal.Signals) -> None:
        for pid in self.runtime_pids():
            _signal(pid, number)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout_s + PATIENCE_SECONDS)
        try:
            connection.request("POST", PATH, body, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except OSError as error:
            raise InvocationError(f"The emulator does not answer: {error}") from error
        finally:
            connection.close()


def _environment(code_dir: Path, handler: str, python: Path, timeout_s: int, memory_mb: int) -> dict[str, str]:
    """What Lambda sets, and nothing of this machine's."""
    return {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(code_dir),
        "LAMBDA_TASK_ROOT": str(code_dir),
        "_HANDLER": handler,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{tools.RUNTIME}",
        "AWS_LAMBDA_FUNCTION_NAME": "mcp-server",
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_s),
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
    }


def _free_ports() -> tuple[int, int]:
    """Two ports that are free now; both are bound before one is let go, so that they differ."""
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]


def _wait_for(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise InvocationError(f"The emulator did not listen within {START_SECONDS} seconds") from None
            time.sleep(0.01)


def _result(status: int, body: bytes) -> Any:
    """The emulator answers 200 to an exception and to a timeout, too: the shape tells."""
    text = body.decode("utf-8", "replace")
    if text.startswith("Task timed out"):
        raise InvocationError(text)
    try:
        result = json.loads(text)
    except ValueError:
        raise InvocationError(text or f"Status {status} without a body") from None
    if status != 200 or (isinstance(result, dict) and "errorMessage" in result and "errorType" in result):
        raise InvocationError(text)
    return result


def _descendants(pid: int) -> list[int]:
    """All processes below one, by the parents in /proc."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            # The name in parentheses may hold spaces and parentheses of its own.
            parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for child, parent in parents.items() if parent in level]
        found += level
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
