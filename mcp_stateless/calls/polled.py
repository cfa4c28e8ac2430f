"""SSE polling (SEP-1699, 2025-11-25): a finished body for each POST and GET of a call that goes on elsewhere.

While the call runs, a body begins with an event that has a fresh id, empty data and the time to wait. Then come the log
messages and questions since the client's last id and, for a caller that gave a token, a progress notification that is
always above the last one. A finished call's body ends with the JSON-RPC response.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from mcp_stateless.calls.cursor import Cursor
from mcp_stateless.calls.desk import EXPIRED, CallDesk, open_questions, outcome
from mcp_stateless.calls.record import CallRecord, Progress, State
from mcp_stateless.calls.store import Snapshot, StoreMisconfigured, StoreUnavailable
from mcp_stateless.notifications import progress_message
from mcp_stateless.principal import Principal
from mcp_stateless.protocol import revisions, sse
from mcp_stateless.protocol.envelope import RequestId, encode
from mcp_stateless.protocol.revisions import REVISIONS, Wire
from mcp_stateless.protocol.sealing import Rejected, seal, unseal
from mcp_stateless.results import failure

ANSWER_PURPOSE: Final = "answer"

MAX_ASKING_RETRY_MS: Final = 30_000
"""Longest wait between two polls while a person is being asked."""

EventId = Callable[[Cursor], str]

log = logging.getLogger(__name__)


def primed(desk: CallDesk, record: CallRecord, principal: Principal) -> bytes:
    """The answer to the POST of a polled call; its questions, if it has some at once, are in it."""
    cursor = Cursor(record.call_id, record.request.rpc_id)
    event_id = _event_ids(desk, principal, record.until_ms)
    first = sse.event(b"", event_id=event_id(cursor), retry_ms=desk.settings.min_retry_ms)
    return b"".join([first, *_questions(cursor, record, event_id, desk, principal)])


async def poll(
    desk: CallDesk,
    last_event_id: str,
    principal: Principal,
    hold_s: float = 0.0,
    fits: Callable[[bytes], bool] = lambda body: True,
) -> bytes | None:
    """The answer to a GET with this `Last-Event-ID`; None: the call's answer was delivered, there is no more.

    It is held for `hold_s` while there is nothing new. `fits` says whether the platform can carry a body; what it
    cannot is cut.

    Raises:
        Rejected: the id is none of ours, or not this caller's.
    """
    cursor = Cursor.from_event_id(last_event_id, desk.keys, principal, desk.clock())
    if cursor.is_final:
        return None
    settings = desk.settings
    try:
        snapshot = await desk.awaited(cursor.call_id, cursor.number, hold_s, lambda found: _is_news(found, cursor))
    except (StoreUnavailable, StoreMisconfigured) as error:
        # Clients end a call after two failed polls, so the store's trouble is not theirs.
        log.warning("call %s could not be read: %s", cursor.call_id, error)
        event_id = _event_ids(desk, principal, desk.now_ms() + settings.call_ttl_s * 1000)
        return sse.event(b"", event_id=event_id(cursor.next_poll()), retry_ms=settings.max_retry_ms)
    if snapshot is None:
        return _expired(cursor, _event_ids(desk, principal, desk.now_ms()))
    event_id = _event_ids(desk, principal, snapshot.record.until_ms)

    def body(of: Snapshot) -> bytes:
        if of.record.state.is_final:
            return _finished(cursor, of, event_id)
        return _running(desk, cursor.next_poll(), of, event_id, principal)

    reply = b""
    for reply in map(body, _ever_smaller(snapshot)):
        if fits(reply):
            break
    return reply


async def take_answer(desk: CallDesk, rpc_id: RequestId, answer: Mapping[str, object], principal: Principal) -> None:
    """A response that a client posted. What answers no question of this caller's is logged and forgotten."""
    try:
        body = unseal(
            desk.keys, ANSWER_PURPOSE, str(rpc_id), bound_to=(principal.key,), now=desk.clock(), max_bytes=1024
        )
        call_id, key = json.loads(body)
        await desk.answer(call_id, key, dict(answer))
    except Rejected as reason:
        log.warning("a posted response answers nothing: %s", reason)
    except (StoreUnavailable, StoreMisconfigured) as error:
        log.error("an answer was lost: %s", error)


def retry_after(desk: CallDesk, record: CallRecord) -> int:
    """About half of what the call has taken so far: short tools answer soon, long ones are not asked all the time."""
    settings = desk.settings
    if record.state is State.ASKING:
        age_ms, most_ms = desk.now_ms() - record.updated_ms, MAX_ASKING_RETRY_MS
    else:
        age_ms, most_ms = desk.now_ms() - record.created_ms, settings.max_retry_ms
    return min(max(age_ms // 2, settings.min_retry_ms), max(most_ms, settings.min_retry_ms))


def _ever_smaller(snapshot: Snapshot) -> Iterator[Snapshot]:
    """The whole of it; or the oldest log batch alone, since the rest comes with the next poll; or no log messages; or,
    for a result that no reply can carry, only that there was one.
    """
    record = snapshot.record
    yield snapshot
    if len(snapshot.entries) > 1 and not record.state.is_final:
        yield replace(snapshot, entries=snapshot.entries[:1])
    yield replace(snapshot, entries=())
    if record.state.is_final:
        text = f"The result of {record.request.tool} is too large for a reply. Ask for less, or for a part of it."
        yield Snapshot(replace(record, outcome=outcome(text)), ())


def _running(desk: CallDesk, cursor: Cursor, snapshot: Snapshot, event_id: EventId, principal: Principal) -> bytes:
    record = snapshot.record
    last = snapshot.entries[-1].number if snapshot.entries else cursor.number
    parts = [
        sse.event(b"", event_id=event_id(cursor), retry_ms=retry_after(desk, record)),
        *_batches(cursor, snapshot, event_id),
        *_questions(replace(cursor, number=last), record, event_id, desk, principal),
    ]
    token = record.request.progress_token
    if token is not None:
        parts.append(sse.event(encode(_heartbeat(record, token, cursor.polls))))
    return b"".join(parts)


def _finished(cursor: Cursor, snapshot: Snapshot, event_id: EventId) -> bytes:
    """What is left of the stream, the response last; the same bytes each time the same cursor asks."""
    response = encode({"jsonrpc": "2.0", "id": cursor.rpc_id, **json.loads(snapshot.record.outcome or "{}")})
    last = replace(cursor.next_poll(), is_final=True)
    return b"".join([*_batches(cursor.next_poll(), snapshot, event_id), sse.event(response, event_id=event_id(last))])


def _expired(cursor: Cursor, event_id: EventId) -> bytes:
    """A call whose record is gone ends as a result: TypeScript clients poll for ever after a JSON-RPC error event."""
    response = encode({"jsonrpc": "2.0", "id": cursor.rpc_id, "result": failure(EXPIRED)})
    return sse.event(response, event_id=event_id(replace(cursor.next_poll(), is_final=True)))


def _is_news(snapshot: Snapshot, cursor: Cursor) -> bool:
    record = snapshot.record
    asked = any(int(str(question["number"])) > cursor.asked for question in open_questions(record).values())
    return record.state.is_final or bool(snapshot.entries) or asked


def _batches(cursor: Cursor, snapshot: Snapshot, event_id: EventId) -> Iterator[bytes]:
    """Log messages. The last one of a batch carries its id: whoever is cut off before it gets the batch again."""
    for entry in snapshot.entries:
        *earlier, last = entry.messages
        yield from (sse.event(encode(message)) for message in earlier)
        yield sse.event(encode(last), event_id=event_id(replace(cursor, number=entry.number)))


def _questions(
    cursor: Cursor, record: CallRecord, event_id: EventId, desk: CallDesk, principal: Principal
) -> Iterator[bytes]:
    """Requests to the client that it was not sent yet. Their ids say which question of which call is answered."""
    for key, question in open_questions(record).items():
        number = int(str(question["number"]))
        if number > cursor.asked:
            body = json.dumps([record.call_id, key]).encode()
            rpc_id = seal(
                desk.keys, ANSWER_PURPOSE, body, bound_to=(principal.key,), expires_at=record.until_ms // 1000
            )
            asked = revisions.question(question, rpc_id, REVISIONS[record.request.revision])
            request = encode({"jsonrpc": "2.0", "id": rpc_id, **asked})
            yield sse.event(request, event_id=event_id(replace(cursor, asked=number)))


def _heartbeat(record: CallRecord, token: RequestId, polls: int) -> Wire:
    """The latest progress, a little higher with each poll, since it has to rise to count as a sign of life."""
    latest = record.progress or Progress(0.0, None, None, 0)
    # Four of a float's steps: past the next power of two its steps are twice as wide, and less would be rounded away.
    value = latest.progress + polls * 4 * math.ulp(latest.progress)
    return progress_message(token, value, latest.total, latest.message, REVISIONS[record.request.revision])


def _event_ids(desk: CallDesk, principal: Principal, until_ms: int) -> EventId:
    return lambda cursor: cursor.event_id(desk.keys, principal, until_ms)
