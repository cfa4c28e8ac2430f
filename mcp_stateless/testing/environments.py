"""Execution environments: what answers an invocation, here in the process, in a process of its own, or one of many."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, cast, runtime_checkable

from mcp_stateless.testing.events import lambda_context

WARM_UP: Final = {"source": "serverless-plugin-warmup"}
START_SECONDS: Final = 60
"""How long a process may take to import its handler; not part of the invocation's time, as on Lambda."""


class InvocationError(Exception):
    """The function did not answer: it raised, ran out of time or died. The next invocation starts it anew."""


@runtime_checkable
class Environment(Protocol):
    """One execution environment. It answers one invocation at a time; callers see to that, or use a `Fleet`."""

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        """Answer one event within `context_ms`.

        Raises:
            InvocationError: there is no answer.
        """
        ...


class InProcess:
    """A handler in this process. Events and results go through JSON, as on the wire."""

    def __init__(self, handler: Callable[[Any, Any], Any]) -> None:
        """`handler` is what Lambda would be given: `(event, context) -> result`."""
        self._handler = handler

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        """Call the handler. Nothing stops it when the time is up: the handler has to keep it."""
        try:
            result = self._handler(json.loads(json.dumps(event)), lambda_context(context_ms))
            return json.loads(json.dumps(result))
        except Exception as error:  # the boundary of the runtime: a handler's error is an answer, too
            raise InvocationError(f"{type(error).__name__}: {error}") from error


class Subprocess:
    """A handler in a Python process of its own, started with the first invocation and again after each failure."""

    def __init__(
        self,
        target: str,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        python: str = sys.executable,
    ) -> None:
        """`target` is `module:attribute`, found from `cwd`; `env` is added to this process's environment."""
        self._command = [python, "-m", "mcp_stateless.testing.worker", target]
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        """Hand the event to the process; one that does not answer in time is killed, as on Lambda."""
        process = self._started()
        request = json.dumps({"event": event, "context_ms": context_ms})
        try:
            cast(Any, process.stdin).write(request + "\n")
            cast(Any, process.stdin).flush()
        except OSError:
            pass  # it died while idle: there will be no answer
        answer = self._answer(context_ms / 1000, f"Task timed out after {context_ms / 1000:.2f} seconds")
        if "error" in answer:
            raise InvocationError(answer["error"])
        return answer["result"]

    def kill(self) -> None:
        """End the process at once, in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            cast(Any, process.stdin).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._answers = queue.SimpleQueue()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._env,
            cwd=self._cwd,
            encoding="utf-8",
            start_new_session=True,  # an interrupt at the terminal is for the parent, which closes this one
        )
        threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True).start()
        self._answer(START_SECONDS, f"The process was not ready after {START_SECONDS} seconds")
        return self._process

    def _answer(self, seconds: float, too_late: str) -> Any:
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise InvocationError(too_late) from None
        if line is None:
            self.close()
            raise InvocationError("Runtime exited without providing a reason")
        return json.loads(line)


def _read(stdout: Any, answers: "queue.SimpleQueue[str | None]") -> None:
    with stdout:
        for line in stdout:
            answers.put(line)
    answers.put(None)


class Fleet:
    """Several environments that share the requests; each gets one at a time. Safe to call from many threads."""

    def __init__(
        self, environments: Sequence[Environment], pick: Literal["round_robin", "first_free"] = "round_robin"
    ) -> None:
        """`round_robin` gives the next request to the next environment, always; `first_free` reuses warm ones first."""
        if not environments:
            raise ValueError("A fleet needs at least one environment")
        self._environments = list(environments)
        self._pick = pick
        self._next = 0
        self._busy = [False] * len(self._environments)
        self._changed = threading.Condition()

    def invoke(self, event: object, context_ms: int = 30_000) -> Any:
        """Let one of the environments answer, as soon as it is free."""
        index = self._take()
        try:
            return self._environments[index].invoke(event, context_ms)
        finally:
            with self._changed:
                self._busy[index] = False
                self._changed.notify_all()

    def warm_up(self) -> None:
        """Start every environment, all at once.

        Raises:
            InvocationError: one of them cannot start.
        """
        with ThreadPoolExecutor(len(self._environments)) as pool:
            list(pool.map(lambda environment: environment.invoke(WARM_UP), self._environments))

    def close(self) -> None:
        """Close the environments that can be closed."""
        for environment in self._environments:
            close = getattr(environment, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self) -> int:
        with self._changed:
            candidates: Sequence[int] = range(len(self._environments))
            if self._pick == "round_robin":
                candidates = [self._next]
                self._next = (self._next + 1) % len(self._environments)
            self._changed.wait_for(lambda: not all(self._busy[index] for index in candidates))
            index = next(index for index in candidates if not self._busy[index])
            self._busy[index] = True
            return index


def as_environment(target: object) -> Environment:
    """An environment as it is; a server (anything with a `lambda_handler`) or a handler in this process."""
    if isinstance(target, Environment):
        return target
    make = getattr(target, "lambda_handler", None)
    if callable(make):
        return InProcess(make())
    if callable(target):
        return InProcess(target)
    raise TypeError(f"{target!r} is no server, handler or environment")
