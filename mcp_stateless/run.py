"""Run one function of an author once, and say how it ended. Used by HTTP requests and, later, by the worker.

Whatever the function does, this returns: exceptions of every kind become an outcome, a time limit ends the waiting. An
`async def` is cancelled at the limit. A `def` runs in a thread of its own, which Python cannot stop: it is left behind,
its context refuses to emit, and Lambda freezes it with the environment until it ends in some later invocation.
"""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from mcp_stateless.context import Context, Running
from mcp_stateless.journal import Detach, Stop

CANCEL_GRACE_S: Final = 0.2
"""How long a cancelled function may take to clean up before it is left behind."""

log = logging.getLogger(__name__)


class Runnable(Protocol):
    """What is needed of a tool, prompt, resource or completion to run its function."""

    @property
    def name(self) -> str: ...
    @property
    def fn(self) -> Callable[..., Any]: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def in_thread(self) -> bool: ...
    @property
    def digest(self) -> str: ...
    @property
    def context_parameter(self) -> str | None: ...
    @property
    def context_type(self) -> type[Context[Any]]: ...


@dataclass(frozen=True, slots=True)
class Done:
    """The function returned."""

    value: object


@dataclass(frozen=True, slots=True)
class Failed:
    """The function raised; `error` may be any exception, `SystemExit` included."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Asked:
    """The function stopped at questions without an answer; which ones, its journal knows."""


@dataclass(frozen=True, slots=True)
class Detached:
    """The function goes on in another invocation, from the start, with what its journal recorded."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Whoever runs the call does not want it any more."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The deadline came first."""

    seconds: float


Outcome: TypeAlias = Done | Asked | Detached | Failed | Interrupted | TimedOut


async def run(
    runnable: Runnable,
    arguments: Mapping[str, object],
    running: Running,
    interrupt: "asyncio.Future[None] | None" = None,
) -> Outcome:
    """Call the function with `arguments` and its context, until the invocation's deadline or `interrupt`."""
    running.loop, running.thread_id = asyncio.get_running_loop(), threading.get_ident()
    kwargs = dict(arguments)
    if runnable.context_parameter is not None:
        kwargs[runnable.context_parameter] = runnable.context_type(running)
    started = time.monotonic()
    ending: asyncio.Future[Any] = _start(runnable, kwargs)
    if runnable.is_async:
        running.journal.main = ending
    deadline = running.invocation.deadline
    await asyncio.wait(
        {ending} if interrupt is None else {ending, interrupt},
        timeout=None if deadline is None else max(0.0, deadline - started),
        return_when=asyncio.FIRST_COMPLETED,
    )
    running.over = True
    if ending.done():
        outcome: Outcome = ending.result()
        return outcome
    await _abandon(runnable, ending)
    return Interrupted() if interrupt is not None and interrupt.done() else TimedOut(time.monotonic() - started)


def _start(runnable: Runnable, kwargs: Mapping[str, object]) -> "asyncio.Future[Outcome]":
    if runnable.is_async:
        return asyncio.ensure_future(_awaited(runnable.fn, kwargs))
    if runnable.in_thread:
        return _threaded(runnable, kwargs)
    finished: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    finished.set_result(_called(runnable.fn, kwargs))
    return finished


async def _awaited(fn: Callable[..., Any], kwargs: Mapping[str, object]) -> Outcome:
    try:
        return Done(await fn(**kwargs))
    except BaseException as error:  # A boundary: SystemExit in a task would end the event loop itself.
        return _ended_by(error)


def _called(fn: Callable[..., Any], kwargs: Mapping[str, object]) -> Outcome:
    try:
        return Done(fn(**kwargs))
    except BaseException as error:  # The same boundary for functions that do not await.
        return _ended_by(error)


def _ended_by(error: BaseException) -> Outcome:
    """A question wherever it was asked, in task groups too; a real error beside it weighs more."""
    if isinstance(error, Stop):
        return Asked()
    if isinstance(error, Detach):
        return Detached()
    if isinstance(error, BaseExceptionGroup):
        _, others = error.split((Stop, Detach))
        if others is not None:
            return Failed(others)
        return Detached() if error.subgroup(Stop) is None else Asked()
    return Failed(error)


def _threaded(runnable: Runnable, kwargs: Mapping[str, object]) -> "asyncio.Future[Outcome]":
    """A thread for each call, not a pool: a pool would fill up with calls that overran."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def finish(outcome: Outcome) -> None:
        if not finished.done():
            finished.set_result(outcome)

    def work() -> None:
        outcome = context.run(_called, runnable.fn, kwargs)
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, outcome)

    threading.Thread(target=work, name=f"mcp:{runnable.name}", daemon=True).start()
    return finished


async def _abandon(runnable: Runnable, ending: "asyncio.Future[Outcome]") -> None:
    ending.cancel()
    if runnable.is_async:
        await asyncio.wait({ending}, timeout=CANCEL_GRACE_S)
        if not ending.done():
            log.warning("%s did not stop when it was cancelled at its time limit", runnable.name)
        return
    log.warning("%s overran its time limit in a thread, which cannot be stopped and runs on", runnable.name)
