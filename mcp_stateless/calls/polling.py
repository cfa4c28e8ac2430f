"""SSE polling (SEP-1699, 2025-11-25): what one POST or one GET of a polled call is answered with. Pure.

Each answer is a finished body. While the call runs, it begins with an event that has a fresh id, empty data and the
time to wait; then come the log messages since the client's last id and, for a caller that gave a token, a progress
notification that is always above the last one. A finished call's answer ends with the JSON-RPC response.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from mcp_stateless.calls.cursor import Cursor
from mcp_stateless.calls.record import CallRecord, Progress
from mcp_stateless.calls.store import Snapshot
from mcp_stateless.notifications import progress_message
from mcp_stateless.protocol import sse
from mcp_stateless.protocol.envelope import RequestId, encode
from mcp_stateless.protocol.revisions import REVISIONS, Wire
from mcp_stateless.results import failure

EXPIRED: Final = "The result of this call is not kept any more. Call the tool again."
"""What a client reads that comes back after the record is gone."""

EventId = Callable[[Cursor], str]


def priming(cursor: Cursor, event_id: EventId, retry_ms: int) -> bytes:
    """An event that only gives the client an id to come back with and the time to do so."""
    return sse.event(b"", event_id=event_id(cursor), retry_ms=retry_ms)


def running(cursor: Cursor, snapshot: Snapshot, event_id: EventId, retry_ms: int) -> bytes:
    """The answer while there is no result."""
    now = cursor.next_poll()
    parts = [priming(now, event_id, retry_ms), *_batches(now, snapshot, event_id)]
    token = snapshot.record.request.progress_token
    if token is not None:
        parts.append(sse.event(encode(_heartbeat(snapshot.record, token, now.polls))))
    return b"".join(parts)


def finished(cursor: Cursor, snapshot: Snapshot, event_id: EventId) -> bytes:
    """What is left of the stream, the response last; the same bytes each time the same cursor asks."""
    now = replace(cursor.next_poll(), is_final=True)
    outcome = json.loads(snapshot.record.outcome or "{}")
    response = encode({"jsonrpc": "2.0", "id": cursor.rpc_id, **outcome})
    return b"".join([*_batches(cursor.next_poll(), snapshot, event_id), sse.event(response, event_id=event_id(now))])


def expired(cursor: Cursor, event_id: EventId) -> bytes:
    """A call whose record is gone ends as a result: TypeScript clients poll for ever after a JSON-RPC error event."""
    response = encode({"jsonrpc": "2.0", "id": cursor.rpc_id, "result": failure(EXPIRED)})
    return sse.event(response, event_id=event_id(replace(cursor.next_poll(), is_final=True)))


def retry_after(age_ms: int, least_ms: int, most_ms: int) -> int:
    """About half of what the call has taken so far: short tools answer soon, long ones are not asked all the time."""
    return min(max(age_ms // 2, least_ms), most_ms)


def _batches(cursor: Cursor, snapshot: Snapshot, event_id: EventId) -> Iterator[bytes]:
    """Log messages. The last one of a batch carries its id: whoever is cut off before it gets the batch again."""
    for entry in snapshot.entries:
        *earlier, last = entry.messages
        yield from (sse.event(encode(message)) for message in earlier)
        yield sse.event(encode(last), event_id=event_id(replace(cursor, number=entry.number)))


def _heartbeat(record: CallRecord, token: RequestId, polls: int) -> Wire:
    """The latest progress, a float's step higher with each poll, since it has to rise to count as a sign of life."""
    latest = record.progress or Progress(0.0, None, None, 0)
    value = latest.progress + polls * math.ulp(latest.progress)
    return progress_message(token, value, latest.total, latest.message, REVISIONS[record.request.revision])
