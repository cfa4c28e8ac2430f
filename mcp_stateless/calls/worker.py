"""One attempt of one call: claim it, run the tool, keep the record informed, write how it ended.

A worker may be started twice for a call, come late, or be killed at any moment. The claim lets one in; every write of
it is fenced by its attempt; and whoever polls a call past its due time finds that the worker was lost.
"""

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from mcp_stateless.calls.desk import numbered
from mcp_stateless.calls.insist import insist
from mcp_stateless.calls.places import Places
from mcp_stateless.calls.record import CallRecord, Claim, Finish, MoveRefused, Park, RecordStep, State
from mcp_stateless.calls.sink import StoreSink
from mcp_stateless.calls.store import CallStore, RecordTooLarge
from mcp_stateless.context import Headers, Running
from mcp_stateless.errors import CannotAsk, NonDeterministicTool, ProtocolError, ToolError
from mcp_stateless.invocation import Invocation
from mcp_stateless.journal import Journal, Records
from mcp_stateless.protocol.envelope import encode, error_object
from mcp_stateless.protocol.inbound import Call, code_of, log_level
from mcp_stateless.protocol.revisions import REVISIONS, Wire
from mcp_stateless.questions import InputRequired, Question
from mcp_stateless.registry import Registry
from mcp_stateless.results import failure, guarded, told, tool_result
from mcp_stateless.run import Asked, Detached, Done, Failed, Interrupted, TimedOut, run
from mcp_stateless.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """Works on the stored calls of one server."""

    registry: Registry
    settings: Settings
    store: CallStore
    clock: Callable[[], float]

    async def work(self, call_id: str, *, remaining_ms: int | None = None, context: object | None = None) -> None:
        """Claim the call and see it to its end. `remaining_ms`: how long this invocation may still run.

        Raises:
            StoreUnavailable, StoreMisconfigured: the call could not be claimed; who polls it launches it again.
        """
        started = time.monotonic()
        try:
            record = await self._insist(call_id, Claim())
        except MoveRefused as refused:
            log.info("call %s is not for this worker: %s", call_id, refused)
            return
        seconds = float(record.request.timeout_s)
        limit = f"the tool has a time limit of {record.request.timeout_s} s"
        if remaining_ms is not None and (remaining_ms - self.settings.worker_margin_ms) / 1000 < seconds:
            seconds = max(0.0, (remaining_ms - self.settings.worker_margin_ms) / 1000)
            limit = "the worker function has less time left than the tool may take"
        invocation = Invocation("worker", 0, deadline=started + seconds, limit=limit, context=context)
        move = await self._attempt(record, invocation)
        if move is not None:
            await self._write(record, move)

    async def _attempt(self, record: CallRecord, invocation: Invocation) -> Finish | Park | None:
        """How the run ended, as the record will have it; None if the call is not this worker's any more."""
        try:
            return await self._run(record, invocation)
        except ToolError as error:
            return self._finish(record, {"result": failure(str(error))})
        except ProtocolError as error:
            if record.request.wire != "task":
                # Clients that poll a stream go on polling after a JSON-RPC error.
                return self._finish(record, {"result": failure(error.message)})
            told_error = error_object(error, code_of(error, REVISIONS[record.request.revision]))
            return Finish(record.attempt, State.FAILED, encode({"error": told_error}).decode())

    async def _run(self, record: CallRecord, invocation: Invocation) -> Finish | Park | None:
        request = record.request
        tool = self.registry.tools.get(request.tool)
        if tool is None:
            raise ToolError("This tool is not offered any more")
        arguments = guarded(lambda: tool.signature.bind(json.loads(record.arguments)), tool.name, record.call_id)
        sink = StoreSink(
            record,
            self.store,
            interval_s=self.settings.flush_interval_ms / 1000,
            log_level=log_level(request.log_level),
            now_ms=self._now_ms,
        )
        journal = self._journal(record)
        running = Running(_call(record), sink, journal, Headers(request.headers), request.principal, invocation)
        async with sink:
            outcome = await run(tool, arguments, running, interrupt=sink.lost)
        try:
            match outcome:
                case Done(InputRequired()):
                    raise CannotAsk(f"{tool.name} returned InputRequired, which a call that runs on cannot; ask by ctx")
                case Done(value):
                    journal.check_ended(tool.name)
                    revision = REVISIONS[request.revision]
                    result = guarded(lambda: tool_result(tool, value, revision), tool.name, record.call_id)
                    return self._finish(record, {"result": result})
                case Asked():
                    journal.ask_again(tool.name)
                    return Park(record.attempt, numbered(journal.pending, record))
                case TimedOut(seconds):
                    raise ToolError(f"{tool.name} was stopped after {seconds:.0f} s: {invocation.limit}")
                case Interrupted():
                    return None
                case Failed(error):
                    raise told(tool.name, error, record.call_id)
                case Detached():
                    raise AssertionError("a worker detaches from nothing")
        except NonDeterministicTool as error:
            log.error("%s", error)
            raise journal.explained(error, self.registry.fingerprint(tool.digest)) from error

    def _journal(self, record: CallRecord) -> Journal:
        async def keep_step(key: str, value: Wire) -> None:
            try:
                await self._insist(record.call_id, RecordStep(record.attempt, key, value))
            except RecordTooLarge as error:
                raise ToolError(f"The value of the step {key!r} is too large to be kept") from error

        request = record.request
        records = Records(
            call_id=request.journal_id or record.call_id,
            started_at=(request.started_ms or record.created_ms) / 1000,
            answers=_answers(record),
            steps=dict(record.steps),
            fingerprint=request.fingerprint,
        )
        modern = REVISIONS[request.revision].modern
        refusal = None if modern and request.wire != "ticket" else _cannot_ask
        return Journal(records, capabilities=request.client_capabilities, refusal=refusal, keep_step=keep_step)

    def _finish(self, record: CallRecord, outcome: Wire) -> Finish:
        text, most = encode(outcome).decode(), self.settings.max_event_bytes
        if len(text.encode()) > most:
            text = _too_large(record, f"has {len(text.encode())} bytes; {most} can be sent")
        return Finish(record.attempt, State.COMPLETED, text)

    async def _write(self, record: CallRecord, move: Finish | Park) -> None:
        """Write how the run ended; what is too large for the store gives way to a result that says so."""
        too_large = Finish(record.attempt, State.COMPLETED, _too_large(record, "cannot be stored"))
        for written in (move, too_large):
            try:
                left = await self._insist(record.call_id, written)
            except MoveRefused as refused:
                log.warning("the end of call %s came too late: %s", record.call_id, refused)
                left = refused.record or record
            except RecordTooLarge as error:
                log.warning("the end of call %s cannot be stored: %s", record.call_id, error)
                continue
            if left.state.is_final:
                await Places(self.store, self.settings.max_open_calls).give_back(record)
            return

    async def _insist(self, call_id: str, move: Claim | RecordStep | Finish | Park) -> CallRecord:
        return await insist(f"a move of call {call_id}", lambda: self.store.apply(call_id, move, self._now_ms()))

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)


def _call(record: CallRecord) -> Call:
    request = record.request
    return Call(
        request.rpc_id,
        "tools/call",
        {"name": request.tool},
        REVISIONS[request.revision],
        client_capabilities=request.client_capabilities,
        log_level=log_level(request.log_level),
        progress_token=request.progress_token,
    )


def _answers(record: CallRecord) -> dict[str, Wire]:
    """The answers by the names of their questions; of a question that was asked again, the latest."""
    answers = {key: answer for key, answer in record.answers.items() if key not in record.questions}
    asked = sorted(record.questions.items(), key=lambda item: int(str(item[1]["number"])))
    return answers | {str(question["name"]): record.answers[key] for key, question in asked if key in record.answers}


def _too_large(record: CallRecord, what: str) -> str:
    text = f"The result of {record.request.tool} {what}. Ask for less, or for a part of it."
    return encode({"result": failure(text)}).decode()


def _cannot_ask(question: Question) -> ToolError:
    return CannotAsk("This client cannot be asked")
