"""Where long calls are taken in, looked after, answered and cancelled, by whichever invocation is at hand.

The order of taking one in is: record, launch, answer. A client is only given an id that any invocation can resolve.
What the client sees of a call is made by the four wires beside this module: `polled`, `tasks`, `waiting`, `tickets`.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mcp_stateless.calls.client_token import ClientToken
from mcp_stateless.calls.cursor import fits
from mcp_stateless.calls.insist import insist
from mcp_stateless.calls.launch import Launcher, LaunchFailed
from mcp_stateless.calls.places import Places
from mcp_stateless.calls.record import (
    Answer,
    CallRecord,
    Cancel,
    Fail,
    MoveRefused,
    Relaunch,
    State,
    StoredRequest,
    WireName,
)
from mcp_stateless.calls.store import CallStore, RecordTooLarge, Snapshot, StoreMisconfigured, StoreUnavailable
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import CallNotStarted, InternalError, MissingClientCapability, ToolError
from mcp_stateless.journal import Records
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol.envelope import encode
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.media import accepts
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import KeyRing
from mcp_stateless.questions import Question
from mcp_stateless.results import failure
from mcp_stateless.settings import Settings

TASKS: Final = "io.modelcontextprotocol/tasks"
"""The tasks extension (2026-07-28)."""

NEEDS_TASKS: Final[Wire] = {"extensions": {TASKS: {}}}

LAUNCH_MS: Final = 30_000
"""How long after its launch a call that nobody claimed is launched again."""

TOO_LARGE: Final[Wire] = {"error": {"code": InternalError.code, "message": "The answer is too large to be kept"}}
"""What is recorded in place of an answer that the store cannot hold, so that the call goes on."""

KEPT_HEADERS: Final = ("user-agent", "accept-language", "traceparent", "tracestate", "mcp-protocol-version")
"""Request headers a worker may see. Never credentials or cookies."""

EXPIRED: Final = "The result of this call is not kept any more. Call the tool again."
LOST: Final = "The call was lost: its worker ended without a result. Call the tool again."
CANCELLED: Final = "The call was cancelled."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who wants a call done, as far as the record keeps it."""

    principal: Principal = ANONYMOUS
    headers: Mapping[str, str] = field(default_factory=dict)
    client: ClientToken | None = None
    """A legacy client that brought its token."""


@dataclass(frozen=True, slots=True)
class CallDesk:
    """Long calls of one server."""

    store: CallStore
    launcher: Launcher
    keys: KeyRing
    settings: Settings
    clock: Callable[[], float]
    new_id: Callable[[], str]

    def wire_for(self, call: Call, tool: Tool, headers: Mapping[str, str]) -> WireName | None:
        """How this client comes back for the result of a long call; None: the call runs in place.

        Raises:
            MissingClientCapability: the tool only runs as a task, and the request does not declare tasks.
            ToolError: the same for a client of an older revision.
        """
        if tool.long_running is False and not tool.detaches:
            return None
        if not call.revision.modern:
            if tool.long_running == "task":
                raise ToolError(f"{tool.name} only runs as a task, for clients at 2026-07-28 that declare {TASKS}")
            return self._legacy_wire(call, headers)
        if declares_tasks(call):
            return "task"
        if tool.long_running == "task":
            raise MissingClientCapability(NEEDS_TASKS)
        return "rounds" if self.settings.state_rounds and tool.long_running != "optional" else None

    def polls(self, call: Call, headers: Mapping[str, str]) -> bool:
        """Whether this client is known to come back by `Last-Event-ID` for the answer to this call."""
        agent, settings = headers.get("user-agent", ""), self.settings
        if settings.json_response or not accepts(headers.get("accept"))[1] or not fits(call.id):
            return False
        if call.revision.batches:
            return False  # It may be one of several, whose answers share a body.
        if agent.startswith(settings.no_poll_user_agents):
            return False
        return call.revision.closes_streams or agent.startswith(settings.poll_user_agents)

    async def accept(
        self,
        call: Call,
        tool: Tool,
        arguments: Mapping[str, object],
        wire: WireName,
        caller: Caller,
        records: Records,
        asked: Mapping[str, Question] | None = None,
    ) -> CallRecord:
        """Take a call in: when this returns, its record lies in the store and its worker is started.

        `records` are those of the run in place, if there was one. With `asked` there is no worker yet: the call waits
        for the answers.

        Raises:
            CallNotStarted: that could not be done; nothing will run.
            ToolError: the arguments are too large, or the caller has too many calls open.
        """
        record = self._new_record(call, tool, arguments, wire, caller, records)
        if asked:
            record = replace(record, state=State.ASKING, questions=numbered(asked, record), open=len(asked))
            record = replace(record, max_attempts=record.max_attempts + 1)
        if caller.client is not None:
            record = replace(record, call_id=caller.client.call_id(call.id))
        try:
            await self._create(record, tool, is_new_id=caller.client is None)
        except MoveRefused as refused:
            known = refused.record
            if known is not None and _is_repeated(known, record):
                return known
            if known is None or known.state.is_final:
                await self._places.give_back(record)
            record = replace(record, call_id=self.new_id())
            await self._create(record, tool, is_new_id=True)
        if not asked:
            await self._launch_new(record)
        return record

    async def read(self, call_id: str, after: int = 0) -> Snapshot | None:
        """The call as it is, looked after if its time is up; None: it is gone.

        Raises:
            StoreUnavailable, StoreMisconfigured.
        """
        snapshot = await self.store.read(call_id, after, self.now_ms())
        return None if snapshot is None else replace(snapshot, record=await self._looked_after(snapshot.record))

    async def awaited(
        self, call_id: str, after: int, hold_s: float, is_news: Callable[[Snapshot], bool]
    ) -> Snapshot | None:
        """The call as soon as there is news of it, or as it is after `hold_s`; read with growing pauses."""
        loop = asyncio.get_running_loop()
        until, pause_s = loop.time() + hold_s, 0.5
        while True:
            snapshot = await self.read(call_id, after)
            if snapshot is None or is_news(snapshot) or loop.time() + pause_s > until:
                return snapshot
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 3.0)

    async def answer(self, call_id: str, key: str, answer: Wire) -> None:
        """Record the client's answer to a question. Late, repeated and unknown ones are ignored.

        Raises:
            StoreUnavailable: it could not be written, however often it was tried.
        """

        def write(kept: Wire) -> Awaitable[CallRecord]:
            return self.store.apply(call_id, Answer(key, kept, self.now_ms() + LAUNCH_MS), self.now_ms())

        what = f"an answer to call {call_id}"
        try:
            try:
                record = await insist(what, lambda: write(answer))
            except RecordTooLarge as error:
                log.warning("%s is too large: %s", what, error)
                record = await insist(what, lambda: write(TOO_LARGE))
        except MoveRefused as refused:
            log.info("%s is ignored: %s", what, refused)
            return
        await self._go_on(record)

    async def cancel(self, call_id: str) -> None:
        """Cancel a call that still runs. Whatever comes of it, nobody is told."""
        try:
            record = await self.store.apply(call_id, Cancel(outcome(CANCELLED)), self.now_ms())
        except MoveRefused as refused:
            log.info("nothing to cancel: %s", refused)
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("a cancellation was lost: %s", error)
        else:
            await self._places.give_back(record)

    async def lost(self, call_id: str, *, was_dropped: bool = False) -> None:
        """Lambda reports that the worker of this call failed, or that its event was dropped before it got to one."""
        snapshot = await self.store.read(call_id, 0, self.now_ms())
        record = None if snapshot is None else snapshot.record
        if record is None or record.state not in (State.PENDING, State.RUNNING):
            return
        if was_dropped and record.state is State.RUNNING:
            return  # There was one event too many: another one brought a worker, and that one works.
        if record.state is State.RUNNING and record.attempt < record.max_attempts:
            await self._launched_again(record)
        else:
            await self._given_up(record)

    def now_ms(self) -> int:
        return int(self.clock() * 1000)

    @property
    def _places(self) -> Places:
        return Places(self.store, self.settings.max_open_calls)

    def _legacy_wire(self, call: Call, headers: Mapping[str, str]) -> WireName | None:
        if self.polls(call, headers):
            return "polled"
        return "ticket" if self.settings.check_call else None

    def _new_record(
        self,
        call: Call,
        tool: Tool,
        arguments: Mapping[str, object],
        wire: WireName,
        caller: Caller,
        records: Records,
    ) -> CallRecord:
        now_ms, text = self.now_ms(), encode(arguments).decode()
        capabilities = call.client_capabilities if caller.client is None else caller.client.capabilities
        request = StoredRequest(
            tool=tool.name,
            rpc_id=call.id,
            revision=call.revision.name,
            wire=wire,
            principal=caller.principal,
            timeout_s=tool.timeout_s,
            progress_token=call.progress_token,
            log_level=None if self.settings.log_messages == "off" else self.settings.log_messages,
            client_capabilities=capabilities,
            headers={name: caller.headers[name] for name in KEPT_HEADERS if name in caller.headers},
            journal_id=records.call_id,
            started_ms=int(records.started_at * 1000),
            fingerprint=records.fingerprint,
            arguments_digest=hashlib.sha256(text.encode()).hexdigest(),
        )
        return CallRecord(
            call_id=self.new_id(),
            request=request,
            arguments=text,
            created_ms=now_ms,
            due_ms=now_ms + LAUNCH_MS,
            until_ms=now_ms + self.settings.call_ttl_s * 1000,
            updated_ms=now_ms,
            max_attempts=1 + tool.retries,
            answers=dict(records.answers),
            steps=dict(records.steps),
        )

    async def _create(self, record: CallRecord, tool: Tool, *, is_new_id: bool) -> None:
        """Put a new record, with a place for its call.

        Raises:
            MoveRefused: the id, which a client chose, is taken; its place may be that of a running call.
            CallNotStarted, ToolError: as `accept`.
        """
        try:
            await self._places.take(record, tool.asks)
            await self.store.create(record)
        except (MoveRefused, RecordTooLarge, StoreUnavailable, StoreMisconfigured) as error:
            if is_new_id:
                await self._places.give_back(record)
            elif isinstance(error, MoveRefused):
                raise
            if isinstance(error, RecordTooLarge):
                raise ToolError(f"The arguments of {tool.name} are too large for a long-running call") from error
            raise _not_started(error) from error

    async def _launch_new(self, record: CallRecord) -> None:
        try:
            await self.launcher.launch(record.call_id)
        except LaunchFailed as error:
            await self._given_up(record)
            raise _not_started(error) from error

    async def _go_on(self, record: CallRecord) -> None:
        """Whoever brought the last answer has the call worked on again."""
        if record.open:
            return
        try:
            await self.launcher.launch(record.call_id)
        except LaunchFailed as error:
            log.warning("call %s will go on later: %s", record.call_id, error)

    async def _looked_after(self, record: CallRecord) -> CallRecord:
        """Past its due time, whoever comes by decides what becomes of a call. One that waits for answers is not due."""
        is_waiting = record.state is State.ASKING and record.open > 0
        if record.state.is_final or is_waiting or self.now_ms() <= record.due_ms:
            return record
        if record.state is State.RUNNING and record.attempt >= record.max_attempts:
            return await self._given_up(record)
        return await self._launched_again(record)

    async def _launched_again(self, record: CallRecord) -> CallRecord:
        again = Relaunch(record.attempt, record.due_ms, self.now_ms() + LAUNCH_MS)
        try:
            relaunched = await self.store.apply(record.call_id, again, self.now_ms())
            await self.launcher.launch(record.call_id)
        except MoveRefused as refused:
            return refused.record or record
        except LaunchFailed as error:
            log.warning("call %s could not be launched again: %s", record.call_id, error)
            return record
        log.warning("call %s is launched again: nobody worked on it", record.call_id)
        return relaunched

    async def _given_up(self, record: CallRecord) -> CallRecord:
        move = Fail(record.attempt, record.due_ms, outcome(LOST))
        try:
            ended = await self.store.apply(record.call_id, move, self.now_ms())
        except MoveRefused as refused:
            return refused.record or record
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("call %s could not be ended: %s", record.call_id, error)
            return record
        await self._places.give_back(ended)
        return ended


def declares_tasks(call: Call) -> bool:
    """Whether this very request declares the tasks extension."""
    extensions = call.client_capabilities.get("extensions")
    return isinstance(extensions, dict) and isinstance(extensions.get(TASKS), dict)


def outcome(text: str) -> str:
    """The outcome of a call that ends without its tool having said anything."""
    return encode({"result": failure(text)}).decode()


def numbered(asked: Mapping[str, Question], record: CallRecord) -> dict[str, Wire]:
    """Questions as the record keeps them: in order, and under keys that no earlier question of the call had."""
    kept: dict[str, Wire] = {}
    for number, (name, question) in enumerate(asked.items(), len(record.questions) + 1):
        key, times = name, 1
        while key in record.questions or key in record.answers or key in kept:
            times += 1
            key = f"{name}~{times}"
        kept[key] = {**question.to_wire(), "name": name, "number": number}
    return kept


def open_questions(record: CallRecord) -> dict[str, Wire]:
    """The questions that wait for an answer, oldest first, by key."""
    if record.state is not State.ASKING:
        return {}
    waiting = [(key, question) for key, question in record.questions.items() if key not in record.answers]
    return dict(sorted(waiting, key=lambda item: int(str(item[1]["number"]))))


def input_requests(record: CallRecord) -> Wire:
    """The open questions as clients at 2026-07-28 are asked them."""
    return {
        key: {"method": question["method"], "params": question["params"]}
        for key, question in open_questions(record).items()
    }


def _is_repeated(known: CallRecord, new: CallRecord) -> bool:
    """Whether a client posted the same request again: it is given the call it has, not a second one."""
    same_tool = known.request.tool == new.request.tool
    same_arguments = known.request.arguments_digest == new.request.arguments_digest
    return same_tool and same_arguments and not known.state.is_final


def _not_started(error: Exception) -> CallNotStarted:
    log.error("a long-running call was not started: %s", error)
    return CallNotStarted("The call could not be started. Try again in a moment.")
