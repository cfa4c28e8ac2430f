"""The call record: its states, and the only moves between them. Pure.

    create ──> PENDING ──claim──> RUNNING ──finish──> COMPLETED | FAILED
                 ^  │               │  ^
                 │  │          park │  │ claim, once nothing is open
                 │  │               v  │
                 │  │             ASKING <──answer── (one question less is open)
                 │  │
                 └──┴─relaunch── from PENDING; from ASKING when nothing is open; from RUNNING when its worker was lost
                                 and an attempt is left

    cancel: from PENDING, RUNNING, ASKING to CANCELLED.     fail: from the same to FAILED, when time is up.
    A state at the end never changes.

Every move is decided against the record as it is, in one conditional write; `apply` says what the condition and the
change are, and a store carries out the same. A run of a worker is an `attempt`: the number fences it, so that a worker
that was given up cannot write any more. Times are whole milliseconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from mcp_stateless.principal import Principal
from mcp_stateless.protocol.envelope import RequestId
from mcp_stateless.protocol.revisions import Wire

SCHEMA: Final = 1
"""Version of what is stored. A record of another version is answered as lost, never misread."""

LATE_MS: Final = 10_000
"""What a worker may take beyond the tool's own time, to start and to write the result."""

WireName: TypeAlias = Literal["polled", "task", "rounds", "ticket"]
"""How the client comes back: by `Last-Event-ID`, `tasks/get`, the call repeated with its state, or `check_call`."""


class State(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    ASKING = "asking"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (State.COMPLETED, State.FAILED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """What was asked for and by whom. Never credentials: no authorization, no cookies."""

    tool: str
    rpc_id: RequestId
    revision: str
    wire: WireName
    principal: Principal
    timeout_s: int
    progress_token: RequestId | None = None
    log_level: str | None = None
    client_capabilities: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    journal_id: str = ""
    """What the function sees as its call's id: that of the run in place, if there was one before."""
    started_ms: int = 0
    """When the call came in, which is before its record was made where it ran in place first."""
    fingerprint: str = ""
    """Of the function at that time; see `Records`."""
    arguments_digest: str = ""
    """Tells whether a request is the same one again, also where the arguments are kept beside the record."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The latest report. `version` counts reports, so that a poll knows whether it has seen this one."""

    progress: float
    total: float | None
    message: str | None
    version: int


@dataclass(frozen=True, slots=True)
class CallRecord:
    """Everything about one call, but for its log messages."""

    call_id: str
    request: StoredRequest
    arguments: str
    """JSON text."""
    created_ms: int
    due_ms: int
    """When somebody has to look after the call: its worker should have claimed it, or finished, by then."""
    until_ms: int
    """When the record counts as gone, whether or not it is deleted yet."""
    updated_ms: int = 0
    """When the last move was made; 0: none yet."""
    state: State = State.PENDING
    attempt: int = 0
    max_attempts: int = 1
    open: int = 0
    """Questions without an answer, while ASKING."""
    progress: Progress | None = None
    questions: Mapping[str, Wire] = field(default_factory=dict)
    answers: Mapping[str, Wire] = field(default_factory=dict)
    """Key of a question -> `{"result": ...}` or `{"error": ...}`."""
    steps: Mapping[str, Wire] = field(default_factory=dict)
    outcome: str | None = None
    """JSON text of `{"result": ...}` or `{"error": ...}`, in a final state."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker takes the call. Whoever comes second, by a duplicate delivery for example, is refused.

    The record itself says until when the worker has to be done: the work event carries nothing but the id.
    """


@dataclass(frozen=True, slots=True)
class Report:
    """The worker is still there; its latest progress, if there is one. Refused, it must stop."""

    attempt: int
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class RecordStep:
    """A step's value or failure, so that no later attempt runs it again."""

    attempt: int
    key: str
    value: Wire


@dataclass(frozen=True, slots=True)
class Park:
    """The run ended at questions; nobody works until they are answered."""

    attempt: int
    questions: Mapping[str, Wire]


@dataclass(frozen=True, slots=True)
class Answer:
    """The client's answer to one open question. The record after it tells who brought `open` to 0.

    Whoever does launches the call again, and if that gets lost, it is done after `due_ms`.
    """

    key: str
    value: Wire
    due_ms: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The worker's result."""

    attempt: int
    state: Literal[State.COMPLETED, State.FAILED]
    outcome: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The client does not want the result any more."""

    outcome: str


@dataclass(frozen=True, slots=True)
class Relaunch:
    """Nobody came, or the worker was lost: let another one claim. Only as long as (attempt, due) are as they were.

    From ASKING once nothing is open, when the launch after the last answer was lost.
    """

    attempt: int
    seen_due_ms: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Time is up. Only as long as (attempt, due) are as they were."""

    attempt: int
    seen_due_ms: int
    outcome: str


Move: TypeAlias = Claim | Report | RecordStep | Park | Answer | Finish | Cancel | Relaunch | Fail


class MoveRefused(Exception):
    """The record does not allow the move. `record` is what it is now; None: there is none, or it has expired."""

    def __init__(self, record: CallRecord | None) -> None:
        super().__init__("no such call" if record is None else f"the call is {record.state}, attempt {record.attempt}")
        self.record = record


def apply(record: CallRecord, move: Move, now_ms: int) -> CallRecord:
    """The record after a move.

    Raises:
        MoveRefused: the record does not allow it.
    """
    if record.until_ms <= now_ms:
        raise MoveRefused(None)
    if not _allowed(record, move, now_ms):
        raise MoveRefused(record)
    return replace(_moved(record, move, now_ms), updated_ms=now_ms)


def _allowed(record: CallRecord, move: Move, now_ms: int) -> bool:
    match move:
        case Claim():
            return _claimable(record, now_ms)
        case Report(attempt=attempt) | RecordStep(attempt=attempt) | Park(attempt=attempt) | Finish(attempt=attempt):
            return record.state is State.RUNNING and record.attempt == attempt
        case Answer(key=key):
            return record.state is State.ASKING and key in record.questions and key not in record.answers
        case Cancel():
            return not record.state.is_final
        case Relaunch(attempt=attempt, seen_due_ms=due):
            unchanged = record.attempt == attempt and record.due_ms == due
            lost = record.state is State.RUNNING and record.attempt < record.max_attempts
            answered = record.state is State.ASKING and record.open == 0
            return unchanged and (record.state is State.PENDING or lost or answered)
        case Fail(attempt=attempt, seen_due_ms=due):
            return not record.state.is_final and record.attempt == attempt and record.due_ms == due


def _claimable(record: CallRecord, now_ms: int) -> bool:
    match record.state:
        case State.PENDING:
            return True
        case State.ASKING:
            return record.open == 0
        case State.RUNNING:
            return record.due_ms < now_ms and record.attempt < record.max_attempts
        case _:
            return False


def _moved(record: CallRecord, move: Move, now_ms: int) -> CallRecord:
    match move:
        case Claim():
            due_ms = now_ms + record.request.timeout_s * 1000 + LATE_MS
            return replace(record, state=State.RUNNING, attempt=record.attempt + 1, due_ms=due_ms)
        case Report(progress=progress):
            return record if progress is None else replace(record, progress=progress)
        case RecordStep(key=key, value=value):
            return replace(record, steps={**record.steps, key: value})
        case Park(questions=questions):
            # Going on after an answer is no retry, so it does not use one up.
            return replace(
                record,
                state=State.ASKING,
                questions={**record.questions, **questions},
                open=len(questions),
                max_attempts=record.max_attempts + 1,
            )
        case Answer(key, value, due_ms):
            answers = {**record.answers, key: value}
            return replace(record, answers=answers, open=record.open - 1, due_ms=due_ms)
        case Finish(state=state, outcome=outcome):
            return replace(record, state=state, outcome=outcome)
        case Cancel(outcome):
            return replace(record, state=State.CANCELLED, outcome=outcome)
        case Relaunch(due_ms=due_ms):
            return replace(record, state=State.PENDING, due_ms=due_ms)
        case Fail(outcome=outcome):
            return replace(record, state=State.FAILED, outcome=outcome)
