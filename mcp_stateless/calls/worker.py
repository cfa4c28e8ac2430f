"""One attempt of one call: claim it, run the tool, keep the record informed, write how it ended.

A worker may be started twice for a call, come late, or be killed at any moment. The claim lets one in; every write of
it is fenced by its attempt; and whoever polls a call past its due time finds that the worker was lost.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp_stateless.calls.record import CallRecord, Claim, Finish, MoveRefused, RecordStep, State
from mcp_stateless.calls.sink import StoreSink
from mcp_stateless.calls.store import CallStore, RecordTooLarge, StoreUnavailable
from mcp_stateless.context import Headers, Running
from mcp_stateless.errors import CannotAsk, ProtocolError, ToolError
from mcp_stateless.invocation import Invocation
from mcp_stateless.journal import Journal, Records
from mcp_stateless.protocol.envelope import encode
from mcp_stateless.protocol.inbound import Call, code_of, log_level
from mcp_stateless.protocol.revisions import REVISIONS, Wire
from mcp_stateless.registry import Registry
from mcp_stateless.results import failure, told, tool_result
from mcp_stateless.run import Done, Failed, Interrupted, TimedOut, run
from mcp_stateless.settings import Settings

WRITE_AGAIN_S: Final = (0.1, 0.3, 1.0, 2.0, 4.0)
"""Waits before a result is written again that the store did not take."""

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
            record = await self.store.apply(call_id, Claim(), self._now_ms())
        except MoveRefused as refused:
            log.info("call %s is not for this worker: %s", call_id, refused)
            return
        seconds = float(record.request.timeout_s)
        limit = f"the tool has a time limit of {record.request.timeout_s} s"
        if remaining_ms is not None and (remaining_ms - self.settings.worker_margin_ms) / 1000 < seconds:
            seconds = max(0.0, (remaining_ms - self.settings.worker_margin_ms) / 1000)
            limit = "the worker function has less time left than the tool may take"
        invocation = Invocation("worker", 0, deadline=started + seconds, limit=limit, context=context)
        outcome = await self._attempt(record, invocation)
        if outcome is not None:
            await self._finish(record, outcome)

    async def _attempt(self, record: CallRecord, invocation: Invocation) -> Wire | None:
        """How the run ended, as the wire will have it; None if the call is not this worker's any more."""
        name = record.request.tool
        try:
            return await self._run(record, invocation)
        except ToolError as error:
            return {"result": failure(str(error))}
        except ProtocolError as error:
            code = code_of(error, REVISIONS[record.request.revision])
            log.info("call %s of %s ended with JSON-RPC error %d", record.call_id, name, code)
            return {"result": failure(error.message)}

    async def _run(self, record: CallRecord, invocation: Invocation) -> Wire | None:
        request = record.request
        tool = self.registry.tools.get(request.tool)
        if tool is None:
            raise ToolError("This tool is not offered any more")
        arguments = tool.signature.bind(json.loads(record.arguments))
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
        match outcome:
            case Done(value):
                journal.check_ended(tool.name)
                return {"result": tool_result(tool, value, REVISIONS[request.revision])}
            case TimedOut(seconds):
                raise ToolError(f"{tool.name} was stopped after {seconds:.0f} s: {invocation.limit}")
            case Interrupted():
                return None
            case Failed(error):
                raise told(tool.name, error, record.call_id)
            case _:
                raise CannotAsk("A call that is worked on later cannot ask the client")

    def _journal(self, record: CallRecord) -> Journal:
        async def keep_step(key: str, value: Wire) -> None:
            await self.store.apply(record.call_id, RecordStep(record.attempt, key, value), self._now_ms())

        records = Records(record.call_id, record.created_ms / 1000, dict(record.answers), dict(record.steps))
        return Journal(records, refusal=_cannot_ask, keep_step=keep_step)

    async def _finish(self, record: CallRecord, outcome: Wire) -> None:
        """Write the result, several times if need be: everything that was worked for is in it."""
        text = encode(outcome).decode()
        most = self.settings.max_event_bytes
        if len(text.encode()) > most:
            text = _too_large(record, len(text.encode()), most)
        for wait_s in (*WRITE_AGAIN_S, None):
            try:
                finish = Finish(record.attempt, State.COMPLETED, text)
                await self.store.apply(record.call_id, finish, self._now_ms())
                return
            except MoveRefused as refused:
                log.warning("the result of call %s came too late: %s", record.call_id, refused)
                return
            except RecordTooLarge:
                text = _too_large(record, len(text.encode()), most)
            except StoreUnavailable as error:
                log.warning("the result of call %s was not taken: %s", record.call_id, error)
                if wait_s is None:
                    raise
                await asyncio.sleep(wait_s)

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


def _too_large(record: CallRecord, size: int, most: int) -> str:
    tool = record.request.tool
    text = f"The result of {tool} has {size} bytes; {most} can be sent. Ask for less, or for a part of it."
    return encode({"result": failure(text)}).decode()


def _cannot_ask() -> ToolError:
    return CannotAsk("A call that is worked on later cannot ask the client yet")
