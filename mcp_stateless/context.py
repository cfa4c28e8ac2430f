"""What a running call may see and do. Tools, prompts and resources get a `Context` by annotating a parameter with it.

A context knows nothing of HTTP or DynamoDB: what it emits goes to an injected `Sink`, what it asks and records goes
through an injected `Journal`, and whoever runs the call decides where that leads.
"""

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Generic, Protocol, TypeAlias, overload

from pydantic import BaseModel
from typing_extensions import TypeVar

from mcp_stateless import questions
from mcp_stateless.content import Message
from mcp_stateless.invocation import LOCAL, Invocation
from mcp_stateless.journal import Journal
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol.inbound import Call, LogLevel
from mcp_stateless.questions import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Root,
    SamplingResult,
)

T = TypeVar("T", default=None)
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)

ElicitationResult: TypeAlias = AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation
"""What came of an elicitation; `.action` tells the three apart, an accepted one has `.data`."""

Form: TypeAlias = Mapping[str, Any]
"""A raw JSON Schema for a form, where a model cannot say it."""


class Sink(Protocol):
    """Where progress and log messages of one call go.

    Both methods return at once or after a write; they never raise for a client that does not want the message.
    """

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def log(self, level: LogLevel, data: object, logger_name: str | None) -> None: ...


class Headers(Mapping[str, str]):
    """Request headers; names are compared without case. They are the client's word, never proof of identity."""

    def __init__(self, lower_case: Mapping[str, str]) -> None:
        self._values = lower_case

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({sorted(self._values)})"


@dataclass(slots=True)
class Running:
    """One call while it runs: what its context is a view of."""

    call: Call
    sink: Sink
    journal: Journal
    headers: Headers = field(default_factory=lambda: Headers({}))
    principal: Principal = ANONYMOUS
    invocation: Invocation = LOCAL
    loop: asyncio.AbstractEventLoop | None = None
    """The loop the call runs on, and below the thread of that loop: what a worker thread waits for."""
    thread_id: int = 0
    random: "random.Random | None" = None
    over: bool = False
    """The call was answered; a thread of it that is still running must not emit any more."""


class CallEnded(RuntimeError):
    """The call this context belongs to was answered already, for example because its time ran out."""


class Context(Generic[T]):
    """The running call. `T` is free for an author's own use and means nothing here."""

    def __init__(self, running: Running) -> None:
        self._running: Final = running

    @property
    def request_id(self) -> str:
        """The client's JSON-RPC id as text. Other clients use the same ids: never a key on its own."""
        return str(self._running.call.id)

    @property
    def protocol_version(self) -> str:
        """Revision in whose shape this call is answered; 2025-03-26 for a request that names none."""
        return self._running.call.revision.name

    @property
    def client_capabilities(self) -> Mapping[str, object]:
        """What this request declares (2026-07-28); empty for requests of older revisions."""
        return self._running.call.client_capabilities

    @property
    def headers(self) -> Mapping[str, str]:
        return self._running.headers

    @property
    def principal(self) -> Principal:
        """Who is calling, as far as it was proved; `ANONYMOUS` otherwise."""
        return self._running.principal

    @property
    def lambda_event(self) -> Mapping[str, object] | None:
        """The Lambda event behind the request; None when the server does not run on Lambda."""
        return self._running.invocation.event

    @property
    def lambda_context(self) -> Any:
        """The Lambda context object; None when the server does not run on Lambda."""
        return self._running.invocation.context

    @property
    def remaining_time_ms(self) -> int | None:
        """Milliseconds until the call is ended; None when nothing limits it."""
        deadline = self._running.invocation.deadline
        return None if deadline is None else max(0, int((deadline - time.monotonic()) * 1000))

    @property
    def blocking(self) -> "Blocking":
        """The same methods for `def` functions, which run in a worker thread and cannot await."""
        return Blocking(self, self._running)

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is. `progress` must rise; a value not above the last one is dropped.

        Raises:
            ValueError: `progress` or `total` is NaN or infinite.
        """
        if not math.isfinite(progress) or not (total is None or math.isfinite(total)):
            raise ValueError("progress and total must be finite numbers")
        self._check_open()
        if not self._running.journal.replaying:
            await self._running.sink.progress(progress, total, message)

    async def log(self, level: LogLevel, data: object, *, logger_name: str | None = None) -> None:
        """Send a log message to the client: nothing happens unless the server offers log messages.

        MCP log messages are deprecated since 2026-07-28; for an operator's log use `logging`.
        """
        self._check_open()
        if not self._running.journal.replaying:
            await self._running.sink.log(level, data, logger_name)

    async def debug(self, data: object, *, logger_name: str | None = None) -> None:
        await self.log("debug", data, logger_name=logger_name)

    async def info(self, data: object, *, logger_name: str | None = None) -> None:
        await self.log("info", data, logger_name=logger_name)

    async def warning(self, data: object, *, logger_name: str | None = None) -> None:
        await self.log("warning", data, logger_name=logger_name)

    async def error(self, data: object, *, logger_name: str | None = None) -> None:
        await self.log("error", data, logger_name=logger_name)

    @property
    def call_id(self) -> str:
        """Random, and the same in every run of this call: before and after questions."""
        return self._running.journal.records.call_id

    @property
    def started_at(self) -> datetime:
        """When the call came in (UTC); the same in every run of it, unlike the clock."""
        return datetime.fromtimestamp(self._running.journal.records.started_at, UTC)

    @property
    def random(self) -> random.Random:
        """Random numbers that are the same in every run of this call. One generator a call, not for secrets."""
        if self._running.random is None:
            self._running.random = random.Random(self.call_id)
        return self._running.random

    @property
    def can_elicit(self) -> bool:
        """Whether this call can put a form to the user; if not, take the answer as an argument instead."""
        return self._running.journal.can_ask(questions.FORM)

    @property
    def can_elicit_url(self) -> bool:
        """Whether this call can ask the user to open a page."""
        return self._running.journal.can_ask(questions.URL)

    @property
    def can_sample(self) -> bool:
        """Whether this call can ask the client's model."""
        return self._running.journal.can_ask(questions.SAMPLING)

    @property
    def can_list_roots(self) -> bool:
        """Whether this call can ask which folders the client works in."""
        return self._running.journal.can_ask(questions.ROOTS)

    @overload
    async def elicit(self, message: str, schema: type[M], *, key: str | None = None) -> ElicitationResult[M]: ...

    @overload
    async def elicit(
        self, message: str, schema: Form, *, key: str | None = None
    ) -> ElicitationResult[dict[str, Any]]: ...

    async def elicit(
        self, message: str, schema: type[BaseModel] | Form, *, key: str | None = None
    ) -> ElicitationResult[Any]:
        """Ask the user to fill in a form. The run ends here; when the answer is there, the function runs again.

        What is recorded until then travels to the client, signed and not secret. Work before a question that is not
        in a `step` is done again. With a `key` the text may differ from run to run.

        Raises:
            MissingClientCapability: the request does not declare forms (see `can_elicit`).
            CannotAsk: this call has no way to ask.
        """
        answer: ElicitationResult[Any] = await self._running.journal.ask(questions.form(message, schema), key)
        return answer

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> ElicitationResult[None]:
        """Ask the user to open a page, for whatever must not pass through the client. Runs and raises as `elicit`."""
        answer: ElicitationResult[None] = await self._running.journal.ask(questions.url(message, url), key)
        return answer

    async def sample(
        self,
        messages: str | Sequence[Message],
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> SamplingResult:
        """Ask the client's model. Runs and raises as `elicit`. Sampling is deprecated since 2026-07-28."""
        options = {
            "systemPrompt": system_prompt,
            "temperature": temperature,
            "stopSequences": None if stop_sequences is None else list(stop_sequences),
            "modelPreferences": model_preferences,
        }
        question = questions.sampling(messages, max_tokens=max_tokens, options=options)
        result: SamplingResult = await self._running.journal.ask(question, key)
        return result

    async def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Ask which folders the client works in. Runs and raises as `elicit`. Roots are deprecated since 2026-07-28."""
        roots: list[Root] = await self._running.journal.ask(questions.ROOTS, key)
        return roots

    @property
    def input_responses(self) -> Mapping[str, object]:
        """The client's answers to an explicit `InputRequired`, as they came; empty in a call's first round."""
        return self._running.journal.offered

    @property
    def request_state(self) -> Any:
        """The `state` of the explicit `InputRequired` that this round answers; None in a call's first round."""
        return self._running.journal.records.state

    async def step(self, key: str, fn: Callable[..., Any]) -> Any:
        """Do something once in the life of this call: later runs get the value that was recorded.

        In a stateless round trip the recorded value travels to the client, signed but not secret. `fn` takes no
        arguments, or `idempotency_key`, which is the same each time the step runs: a run that is cut between the effect
        and its record repeats it. The value comes back as JSON has it, in the first run too.

        Raises:
            StepError: `fn` raised, in this run or in an earlier one; the failure is recorded.
        """
        self._check_open()
        return await self._running.journal.step(key, fn)

    async def detach(self) -> None:
        """From here on, run in another invocation, where this call can: up to here its questions are round trips.

        The function is run again from the start, with the answers and steps that were recorded; when it comes here
        again, it goes on. Where nobody can come back for the result, it goes on at once, within the request's time.
        """
        self._check_open()
        await self._running.journal.detach()

    def _check_open(self) -> None:
        if self._running.over:
            raise CallEnded("this call was answered already; nothing more can be sent for it")


class Blocking:
    """`Context` methods for functions that cannot await. Each returns when the awaited one would."""

    def __init__(self, context: Context[Any], running: Running) -> None:
        self._context = context
        self._running = running

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self._wait(self._context.report_progress(progress, total, message))

    def log(self, level: LogLevel, data: object, *, logger_name: str | None = None) -> None:
        self._wait(self._context.log(level, data, logger_name=logger_name))

    def debug(self, data: object, *, logger_name: str | None = None) -> None:
        self.log("debug", data, logger_name=logger_name)

    def info(self, data: object, *, logger_name: str | None = None) -> None:
        self.log("info", data, logger_name=logger_name)

    def warning(self, data: object, *, logger_name: str | None = None) -> None:
        self.log("warning", data, logger_name=logger_name)

    def error(self, data: object, *, logger_name: str | None = None) -> None:
        self.log("error", data, logger_name=logger_name)

    @overload
    def elicit(self, message: str, schema: type[M], *, key: str | None = None) -> ElicitationResult[M]: ...

    @overload
    def elicit(self, message: str, schema: Form, *, key: str | None = None) -> ElicitationResult[dict[str, Any]]: ...

    def elicit(self, message: str, schema: Any, *, key: str | None = None) -> ElicitationResult[Any]:
        answer: ElicitationResult[Any] = self._wait(self._context.elicit(message, schema, key=key))
        return answer

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> ElicitationResult[None]:
        return self._wait(self._context.elicit_url(message, url, key=key))

    def sample(
        self,
        messages: str | Sequence[Message],
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        model_preferences: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> SamplingResult:
        return self._wait(
            self._context.sample(
                messages,
                max_tokens=max_tokens,
                system_prompt=system_prompt,
                temperature=temperature,
                stop_sequences=stop_sequences,
                model_preferences=model_preferences,
                key=key,
            )
        )

    def list_roots(self, *, key: str | None = None) -> list[Root]:
        return self._wait(self._context.list_roots(key=key))

    def step(self, key: str, fn: Callable[..., Any]) -> Any:
        return self._wait(self._context.step(key, fn))

    def detach(self) -> None:
        self._wait(self._context.detach())

    def _wait(self, coroutine: Coroutine[Any, Any, R]) -> R:
        loop = self._running.loop
        if self._running.over or loop is None or not loop.is_running():
            # The thread of a call whose time ran out: waiting would last until some later invocation.
            coroutine.close()
            raise CallEnded("this call was answered already; nothing more can be sent for it")
        if threading.get_ident() == self._running.thread_id:
            coroutine.close()
            raise RuntimeError("ctx.blocking works in worker threads only; register the function with in_thread=True")
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()
