"""What a call asked, was told and did: recorded, matched and replayed.

A function that asks is never kept waiting. Its run ends at the first unanswered question; when the answers are there it
is run again from the start, and every question and step that is recorded returns at once. For that the function must
take the same way each time: questions are matched by their `key`, else by what is asked and how often it was asked
before, never by order, so questions in parallel may come in any order.
"""

import asyncio
import contextvars
import hashlib
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_jsonable_python

from mcp_stateless.errors import AskError, MissingClientCapability, NonDeterministicTool, StepError, ToolError
from mcp_stateless.questions import InputRequired, Question

SETTLE_S: Final = 1.0
"""How long a new question waits for recorded answers that other tasks of the same run have not come to yet."""

QUIET_S: Final = 0.05
"""How long a question asked in a task of its own waits for others like it: clients allow a call about ten rounds."""

MOST_STALE_ANSWERS: Final = 2
"""Answers that nobody asks for any more; a question with the time in its text would collect them for ever."""

_in_step: contextvars.ContextVar[bool] = contextvars.ContextVar("mcp_stateless.in_step", default=False)

log = logging.getLogger(__name__)


class Stop(BaseException):
    """Ends a run at an unanswered question. Not an `Exception`: a tool's own handlers must let it pass."""


class Detach(BaseException):
    """Ends a run that goes on in another invocation."""


@dataclass(slots=True)
class Records:
    """Everything a later run of the same call needs; a JSON value."""

    call_id: str
    started_at: float
    """Seconds since the epoch."""
    answers: dict[str, dict[str, object]] = field(default_factory=dict)
    """Name of a question -> `{"result": ...}` or `{"error": {...}}`, as the client answered."""
    steps: dict[str, dict[str, object]] = field(default_factory=dict)
    """Key -> `{"value": ...}` or `{"error": text}`."""
    asked: list[str] = field(default_factory=list)
    """Names of the questions the client has in hand."""
    state: object = None
    """What an author put into an explicit `InputRequired`."""
    rounds: int = 0
    fingerprint: str = ""
    """Of the function that recorded this: the server's version, and what the function takes."""

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Records":
        """What an older version of this package did not record yet has its default."""
        return cls(**{name: value[name] for name in cls.__dataclass_fields__ if name in value})


class Journal:
    """The records of one run. `offered` are the answers that came with this request, by name of the question."""

    def __init__(
        self,
        records: Records,
        *,
        offered: Mapping[str, object] | None = None,
        capabilities: Mapping[str, object] | None = None,
        refusal: Callable[[Question], Exception] | None = None,
        keep_step: Callable[[str, dict[str, object]], Awaitable[None]] | None = None,
        can_detach: bool = False,
    ) -> None:
        """`capabilities`: what the client declared it can be asked.

        `refusal`: what to raise for a question that cannot be put to it; the missing capability, unless said otherwise.
        `keep_step`: writes a step down before its value is used; without one, the records as a whole are kept.
        `can_detach`: the call can go on in another invocation.
        """
        self.records = records
        self.pending: dict[str, Question] = {}
        self.stopped = False
        self.offered = offered or {}
        self._capabilities = capabilities or {}
        self._refusal = refusal or _missing
        self._can_detach = can_detach
        self._keep_step = keep_step
        self._consumed: set[str] = set()
        self._asked_now: dict[str, str] = {}
        self._occurrences: dict[str, int] = {}
        self._steps: dict[str, asyncio.Lock] = {}
        self._steps_under_way = 0
        self.main: asyncio.Future[Any] | None = None
        """The task of an `async def` function itself. What it asks there is asked alone: nothing else has to wait."""
        self._progress = asyncio.Event()
        for name in records.asked:
            if name in self.offered:
                records.answers[name] = {"result": self.offered[name]}

    def can_ask(self, question: Question) -> bool:
        return question.may_be_put_to(self._capabilities)

    async def ask(self, question: Question, key: str | None) -> Any:
        """The answer to a question; without one, the run ends here.

        Raises:
            Stop: there is no answer yet.
            MissingClientCapability: this request does not declare that it can be asked that.
            CannotAsk: nobody can be asked in this call.
        """
        _refuse_inside_a_step("a question")
        name = self._name(question, key)
        if name in self.records.answers:
            try:
                return self._answered(name, question)
            except ValueError as error:
                log.info("the question %r is asked again: %s", name, error)
                del self.records.answers[name]
        self._check(question)
        self.pending[name] = question
        self._progress.set()
        await self._settled()
        self.stopped = True
        raise Stop(name)

    @property
    def replaying(self) -> bool:
        """Whether something recorded is still ahead: what the run does until then, the client has seen."""
        return bool(self._unused())

    async def detach(self) -> None:
        """Go on in another invocation, where there can be one; there, and where there cannot, this does nothing.

        Raises:
            Detach: the run ends here.
        """
        if self._can_detach:
            self.stopped = True
            raise Detach

    def put(self, required: InputRequired) -> None:
        """Take over the questions of an explicit `InputRequired`; raises as `ask` does, but never stops."""
        for question in required.requests.values():
            self._check(question)
        self.pending = dict(required.requests)
        self.records.state = required.state

    async def step(self, key: str, fn: Callable[..., Any]) -> Any:
        """Run `fn` once in the life of the call and return its value as JSON has it; later runs get the recorded one.

        Raises:
            StepError: `fn` raised, in this run or an earlier one.
        """
        if not key:
            raise ValueError("a step needs a key")
        _refuse_inside_a_step(f"the step {key!r}")
        async with self._steps.setdefault(key, asyncio.Lock()):
            record = self.records.steps.get(key)
            if record is None:
                self._steps_under_way += 1
                try:
                    record = self.records.steps[key] = await self._performed(key, fn)
                    if self._keep_step is not None:
                        await self._keep_step(key, record)
                finally:
                    self._steps_under_way -= 1
                    self._progress.set()
            self._consume(f"step {key}")
        if "error" in record:
            raise StepError(str(record["error"]))
        return record["value"]

    def idempotency_key(self, step: str) -> str:
        """The same for a step each time it runs, whatever state or attempt it runs from."""
        return hashlib.sha256(f"{self.records.call_id}/{step}".encode()).hexdigest()[:32]

    def check_ended(self, name: str) -> None:
        """A run that returned must have used everything that was recorded.

        Raises:
            NonDeterministicTool: it did not, or it went on after a question had stopped it.
        """
        if self.stopped:
            raise NonDeterministicTool(
                f"{name} went on after a question had ended its run; let BaseException pass and cancel no other task"
            )
        if self._unused():
            raise NonDeterministicTool(
                f"{name} took another way when it was run again: it did not come to what was recorded before"
            )

    def ask_again(self, name: str) -> Records:
        """The records to carry until the answers to the pending questions come.

        Raises:
            NonDeterministicTool: questions keep changing from run to run.
        """
        records = self.records
        if sum(item.startswith("answer ") for item in self._unused()) >= MOST_STALE_ANSWERS:
            raise NonDeterministicTool(
                f"{name} asks something else each time it is run again, perhaps with the time or a random value in "
                "the question; give the question a key"
            )
        records.asked = sorted(self.pending) if self.stopped else []
        records.rounds += 1
        return records

    def explained(self, error: NonDeterministicTool, fingerprint: str) -> ToolError:
        """A deploy between two runs is the usual reason why a replay takes another way."""
        if self.records.fingerprint in ("", fingerprint):
            return error
        return ToolError("The tool changed while the call was waiting; start the call again")

    def _check(self, question: Question) -> None:
        if not question.may_be_put_to(self._capabilities):
            raise self._refusal(question)

    def _answered(self, name: str, question: Question) -> object:
        """The answer as the question reads it; raises `ValueError` if it does not fit, `AskError` if it is an error."""
        answer = self.records.answers[name]
        if "error" in answer:
            self._consume(f"answer {name}")
            error = answer["error"]
            raise AskError(str(error.get("message", "")) if isinstance(error, dict) else "")
        result = answer["result"]
        value = question.read(result if isinstance(result, dict) else {})
        self._consume(f"answer {name}")
        return value

    def _name(self, question: Question, key: str | None) -> str:
        digest = question.digest
        if key is None:
            occurrence = self._occurrences[digest] = self._occurrences.get(digest, 0) + 1
            return f"{question.method.partition('/')[0]}-{digest}-{occurrence}"
        if not key:
            raise ValueError("the key of a question must not be empty")
        if self._asked_now.setdefault(key, digest) != digest:
            raise ValueError(f"the key {key!r} is used for two different questions; give each its own")
        return key

    def _consume(self, item: str) -> None:
        self._consumed.add(item)
        self._progress.set()

    def _unused(self) -> set[str]:
        answers = {f"answer {name}" for name in self.records.answers}
        return (answers | {f"step {key}" for key in self.records.steps}) - self._consumed

    async def _settled(self) -> None:
        """Let the other tasks of this run end their steps, and come to recorded answers and to questions of their own.

        A step is waited for however long it takes: cut off, it would be done again.
        """
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        quiet_s = 0.0 if self.main is None or asyncio.current_task() is self.main else QUIET_S
        deadline = loop.time() + SETTLE_S
        while self._steps_under_way or (left := deadline - loop.time()) > 0:
            patience = None if self._steps_under_way else left if self._unused() else min(left, quiet_s)
            self._progress.clear()
            try:
                await asyncio.wait_for(self._progress.wait(), patience)
            except TimeoutError:
                return

    async def _performed(self, key: str, fn: Callable[..., Any]) -> dict[str, object]:
        arguments = {"idempotency_key": self.idempotency_key(key)} if _wants_key(fn) else {}
        inside = _in_step.set(True)
        try:
            value = await fn(**arguments) if inspect.iscoroutinefunction(fn) else await _called(fn, arguments)
        except ToolError as error:
            return {"error": str(error)}
        except Exception as error:
            # A boundary: the failure is recorded, and a record may travel to the client, so it says only the kind.
            log.exception("the step %r failed", key)
            return {"error": f"The step {key!r} failed: {type(error).__name__}"}
        finally:
            _in_step.reset(inside)
        try:
            return {"value": json.loads(json.dumps(to_jsonable_python(value), allow_nan=False))}
        except (PydanticSerializationError, ValueError) as error:
            raise ToolError(f"The step {key!r} returned a value that JSON cannot carry") from error


def _missing(question: Question) -> Exception:
    return MissingClientCapability(question.needs)


def _refuse_inside_a_step(what: str) -> None:
    """A recorded step is not run again, so what is recorded inside it would be missed by every replay."""
    if _in_step.get():
        raise RuntimeError(f"{what} cannot be inside a step; move it in front")


def _wants_key(fn: Callable[..., Any]) -> bool:
    try:
        return "idempotency_key" in inspect.signature(fn).parameters
    except ValueError:  # Some builtins have no signature.
        return False


async def _called(fn: Callable[..., Any], arguments: Mapping[str, object]) -> Any:
    value = await asyncio.to_thread(fn, **arguments)
    return await value if isinstance(value, Awaitable) else value
