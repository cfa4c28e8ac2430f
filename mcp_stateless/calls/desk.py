"""Where long calls are taken in, asked about, cancelled and looked after, by whichever invocation is at hand.

The order of taking one in is: record, launch, answer. A client is only given an id that any invocation can resolve.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from mcp_stateless.calls import polling
from mcp_stateless.calls.client_token import ClientToken
from mcp_stateless.calls.cursor import Cursor, fits
from mcp_stateless.calls.launch import Launcher, LaunchFailed
from mcp_stateless.calls.record import (
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
from mcp_stateless.errors import CallNotStarted, ToolError
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.envelope import RequestId, encode
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.media import accepts
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import KeyRing, Rejected, seal, unseal
from mcp_stateless.results import failure
from mcp_stateless.settings import Settings

LAUNCH_MS: Final = 30_000
"""How long after its launch a call that nobody claimed is launched again."""

TICKET_PURPOSE: Final = "ticket"

KEPT_HEADERS: Final = ("user-agent", "accept-language", "traceparent", "tracestate", "mcp-protocol-version")
"""Request headers a worker may see. Never credentials or cookies."""

LOST: Final = "The call was lost: its worker ended without a result. Call the tool again."
CANCELLED: Final = "The call was cancelled."
UNANSWERED: Final = "The call ended because its question was not answered in time."

log = logging.getLogger(__name__)


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
        """How this client can come back for a long result; None: the call runs in place."""
        if tool.long_running is False or call.revision.modern:
            return None
        if self._polls(call, headers):
            return "polled"
        return "ticket" if self.settings.check_call else None

    async def accept(
        self,
        call: Call,
        tool: Tool,
        arguments: Mapping[str, object],
        *,
        wire: WireName,
        principal: Principal,
        headers: Mapping[str, str],
        client: ClientToken | None,
    ) -> CallRecord:
        """Take a call in: its record lies in the store and its worker is started when this returns.

        Raises:
            CallNotStarted: that could not be done; nothing will run.
            ToolError: the arguments are too large.
        """
        record = self._new_record(call, tool, arguments, wire, principal, headers)
        if client is not None:
            record = replace(record, call_id=client.call_id(call.id))
        try:
            await self.store.create(record)
        except MoveRefused as refused:
            if refused.record is not None and _is_repeated(refused.record, record):
                return refused.record
            record = replace(record, call_id=self.new_id())
            await self._create(record)
        except (StoreUnavailable, StoreMisconfigured) as error:
            raise _not_started(error) from error
        except RecordTooLarge as error:
            raise ToolError(f"The arguments of {tool.name} are too large for a long-running call") from error
        await self._launch_new(record)
        return record

    def primed(self, record: CallRecord, principal: Principal) -> bytes:
        """The answer to the POST of a polled call."""
        cursor = Cursor(record.call_id, record.request.rpc_id)
        return polling.priming(cursor, self._event_ids(principal, record.until_ms), self.settings.min_retry_ms)

    async def poll(self, event_id: str, principal: Principal) -> bytes | None:
        """The answer to a GET with this `Last-Event-ID`; None: the call's answer was delivered, there is no more.

        Raises:
            Rejected: the id is none of ours, or not this caller's.
        """
        cursor = Cursor.from_event_id(event_id, self.keys, principal, self.clock())
        if cursor.is_final:
            return None
        event_ids = self._event_ids(principal, self._now_ms() + self.settings.call_ttl_s * 1000)
        try:
            snapshot = await self._news(cursor)
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("call %s could not be read: %s", cursor.call_id, error)
            return polling.priming(cursor.next_poll(), event_ids, self.settings.max_retry_ms)
        if snapshot is None:
            return polling.expired(cursor, event_ids)
        event_ids = self._event_ids(principal, snapshot.record.until_ms)
        if snapshot.record.state.is_final:
            return polling.finished(cursor, snapshot, event_ids)
        return polling.running(cursor, snapshot, event_ids, self._retry_ms(snapshot.record))

    async def cancel(self, rpc_id: RequestId, client: ClientToken) -> None:
        """Cancel this client's call, if it has one that still runs. Whatever happens, the client is not told."""
        try:
            await self.store.apply(client.call_id(rpc_id), Cancel(_outcome(CANCELLED)), self._now_ms())
        except MoveRefused as refused:
            log.info("nothing to cancel: %s", refused)
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("a cancellation was lost: %s", error)

    async def lost(self, call_id: str) -> None:
        """Lambda reports that the worker of this call failed, or that its event was dropped."""
        snapshot = await self.store.read(call_id, 0, self._now_ms())
        if snapshot is not None and not snapshot.record.state.is_final:
            await self._given_up(snapshot.record)

    def ticket(self, record: CallRecord, principal: Principal) -> Wire:
        """The result that tells a client without another way how to go on."""
        body = record.call_id.encode()
        expires_at = record.until_ms // 1000
        ticket = seal(self.keys, TICKET_PURPOSE, body, bound_to=(principal.key,), expires_at=expires_at)
        text = f"{record.request.tool} is running. Call check_call with this ticket for its result: {ticket}"
        return {"content": [{"type": "text", "text": text}], "isError": False}

    async def check(self, ticket: str, principal: Principal, hold_s: float) -> Wire:
        """The result of the call of a ticket, or how far it is.

        Raises:
            ToolError: the ticket does not hold, its call is gone, or the store does not answer.
        """
        try:
            body = unseal(self.keys, TICKET_PURPOSE, ticket, bound_to=(principal.key,), now=self.clock(), max_bytes=256)
            snapshot = await self._news(Cursor(body.decode(), 0), hold_s=hold_s)
        except Rejected as reason:
            log.warning("a ticket was refused: %s", reason)
            raise ToolError("This ticket does not hold. Call the tool again.") from reason
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("a ticket could not be looked up: %s", error)
            raise ToolError("The call cannot be looked up right now. Try again in a moment.") from error
        if snapshot is None:
            raise ToolError(polling.EXPIRED)
        record = snapshot.record
        if record.outcome is None:
            return {"content": [{"type": "text", "text": _still_running(record)}], "isError": False}
        result: Wire = json.loads(record.outcome)["result"]
        return result

    def _polls(self, call: Call, headers: Mapping[str, str]) -> bool:
        agent = headers.get("user-agent", "")
        settings = self.settings
        if settings.json_response or not accepts(headers.get("accept"))[1] or not fits(call.id):
            return False
        if agent.startswith(settings.no_poll_user_agents):
            return False
        return call.revision.closes_streams or agent.startswith(settings.poll_user_agents)

    def _new_record(
        self,
        call: Call,
        tool: Tool,
        arguments: Mapping[str, object],
        wire: WireName,
        principal: Principal,
        headers: Mapping[str, str],
    ) -> CallRecord:
        now_ms = self._now_ms()
        request = StoredRequest(
            tool=tool.name,
            rpc_id=call.id,
            revision=call.revision.name,
            wire=wire,
            principal=principal,
            timeout_s=tool.timeout_s,
            progress_token=call.progress_token,
            log_level=None if self.settings.log_messages == "off" else self.settings.log_messages,
            client_capabilities=call.client_capabilities,
            headers={name: headers[name] for name in KEPT_HEADERS if name in headers},
        )
        return CallRecord(
            call_id=self.new_id(),
            request=request,
            arguments=encode(arguments).decode(),
            created_ms=now_ms,
            due_ms=now_ms + LAUNCH_MS,
            until_ms=now_ms + self.settings.call_ttl_s * 1000,
            max_attempts=1 + tool.retries,
        )

    async def _create(self, record: CallRecord) -> None:
        try:
            await self.store.create(record)
        except (MoveRefused, StoreUnavailable, StoreMisconfigured) as error:
            raise _not_started(error) from error

    async def _launch_new(self, record: CallRecord) -> None:
        try:
            await self.launcher.launch(record.call_id)
        except LaunchFailed as error:
            await self._given_up(record)
            raise _not_started(error) from error

    async def _news(self, cursor: Cursor, hold_s: float | None = None) -> Snapshot | None:
        """The call as it is, or as it is once something has happened, if polls may be held for a while."""
        loop = asyncio.get_running_loop()
        held_until = loop.time() + (self.settings.hold_seconds if hold_s is None else hold_s)
        seen, pause_s = None, 0.5
        while True:
            snapshot = await self.store.read(cursor.call_id, cursor.number, self._now_ms())
            if snapshot is None:
                return None
            snapshot = replace(snapshot, record=await self._looked_after(snapshot.record))
            progress = snapshot.record.progress
            is_news = seen is not None and progress != seen.record.progress
            if snapshot.record.state.is_final or snapshot.entries or is_news or loop.time() + pause_s > held_until:
                return snapshot
            seen = snapshot
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 3.0)

    async def _looked_after(self, record: CallRecord) -> CallRecord:
        """Past its due time, whoever comes by decides what becomes of a call."""
        if record.state.is_final or self._now_ms() <= record.due_ms:
            return record
        lost = record.state is State.RUNNING and record.attempt >= record.max_attempts
        if lost or record.state is State.ASKING:
            return await self._given_up(record)
        again = Relaunch(record.attempt, record.due_ms, self._now_ms() + LAUNCH_MS)
        try:
            relaunched = await self.store.apply(record.call_id, again, self._now_ms())
            await self.launcher.launch(record.call_id)
        except MoveRefused as refused:
            return refused.record or record
        except LaunchFailed as error:
            log.warning("call %s could not be launched again: %s", record.call_id, error)
            return record
        log.warning("call %s is launched again: nobody worked on it", record.call_id)
        return relaunched

    async def _given_up(self, record: CallRecord) -> CallRecord:
        outcome = _outcome(UNANSWERED if record.state is State.ASKING else LOST)
        try:
            return await self.store.apply(record.call_id, Fail(record.attempt, record.due_ms, outcome), self._now_ms())
        except MoveRefused as refused:
            return refused.record or record
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("call %s could not be ended: %s", record.call_id, error)
            return record

    def _event_ids(self, principal: Principal, until_ms: int) -> polling.EventId:
        return lambda cursor: cursor.event_id(self.keys, principal, until_ms)

    def _retry_ms(self, record: CallRecord) -> int:
        age_ms = self._now_ms() - record.created_ms
        return polling.retry_after(age_ms, self.settings.min_retry_ms, self.settings.max_retry_ms)

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)


def _is_repeated(known: CallRecord, new: CallRecord) -> bool:
    """Whether a client posted the same request again: it is given the call it has, not a second one."""
    same = known.request.tool == new.request.tool and known.arguments in ("", new.arguments)
    return same and not known.state.is_final


def _outcome(text: str) -> str:
    return encode({"result": failure(text)}).decode()


def _not_started(error: Exception) -> CallNotStarted:
    log.error("a long-running call was not started: %s", error)
    return CallNotStarted("The call could not be started. Try again in a moment.")


def _still_running(record: CallRecord) -> str:
    text = f"{record.request.tool} is still running"
    if record.progress is not None:
        total = "" if record.progress.total is None else f" of {record.progress.total:g}"
        text = f"{text}, at {record.progress.progress:g}{total}"
        if record.progress.message is not None:
            text = f"{text} ({record.progress.message})"
    return f"{text}. Call check_call again with the same ticket."
