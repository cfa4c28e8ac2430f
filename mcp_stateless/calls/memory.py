"""Call records in this process: for local runs and tests, where one process serves and works.

Any number of threads and event loops may share it. Records of calls that ended are kept for later polls, the newest of
them; the rest of a record's promises are those of every store.
"""

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_stateless.calls import record as moves
from mcp_stateless.calls.record import CallRecord, Cancel, Fail, Finish, Move, MoveRefused
from mcp_stateless.calls.store import MAX_TEXT_BYTES, Entry, RecordTooLarge, Snapshot, entry_number
from mcp_stateless.protocol.revisions import Wire


@dataclass(slots=True)
class _Call:
    record: CallRecord
    entries: dict[int, Entry] = field(default_factory=dict)


class MemoryCallStore:
    """See `CallStore`. What is put in and what is handed out is copied: nobody holds a part of a stored record."""

    def __init__(self, *, max_finished: int = 1000) -> None:
        """Keep at most `max_finished` calls that have ended or expired; the oldest are forgotten first."""
        self._max_finished = max_finished
        self._calls: dict[str, _Call] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    async def create(self, record: CallRecord) -> None:
        _check(record.arguments)
        with self._lock:
            known = self._calls.get(record.call_id)
            if known is not None:
                raise MoveRefused(_alive(known.record, record.created_ms))
            self._calls[record.call_id] = _Call(copy.deepcopy(record))
            self._forget(record.created_ms)

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        if isinstance(move, Finish | Cancel | Fail):
            _check(move.outcome)
        with self._lock:
            call = self._calls.get(call_id)
            if call is None:
                raise MoveRefused(None)
            call.record = moves.apply(copy.deepcopy(call.record), copy.deepcopy(move), now_ms)
            return copy.deepcopy(call.record)

    async def append(self, call_id: str, attempt: int, number: int, messages: Sequence[Wire]) -> None:
        entry = Entry(entry_number(attempt, number), copy.deepcopy(list(messages)))
        with self._lock:
            call = self._calls.get(call_id)
            if call is not None:
                call.entries[entry.number] = entry

    async def read(self, call_id: str, after: int, now_ms: int) -> Snapshot | None:
        with self._lock:
            call = self._calls.get(call_id)
            record = None if call is None else _alive(call.record, now_ms)
            if call is None or record is None:
                return None
            numbers = sorted(number for number in call.entries if number > after)
            return copy.deepcopy(Snapshot(record, [call.entries[number] for number in numbers]))

    async def admit(self, caller: str, call_id: str, until_ms: int, most: int, now_ms: int) -> bool:
        with self._lock:
            taken = {id: until for id, until in self._places.get(caller, {}).items() if until > now_ms}
            if len(taken) >= most and call_id not in taken:
                return False
            self._places[caller] = {**taken, call_id: until_ms}
            return True

    async def leave(self, caller: str, call_id: str) -> None:
        with self._lock:
            taken = self._places.get(caller, {})
            taken.pop(call_id, None)
            if not taken:
                self._places.pop(caller, None)

    def _forget(self, now_ms: int) -> None:
        ended = [id for id, call in self._calls.items() if call.record.state.is_final or call.record.until_ms <= now_ms]
        for id in ended[: max(0, len(ended) - self._max_finished)]:
            del self._calls[id]


def _alive(record: CallRecord, now_ms: int) -> CallRecord | None:
    return copy.deepcopy(record) if record.until_ms > now_ms else None


def _check(text: str) -> None:
    """The limit of a deployed server, so that a local run meets it."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise RecordTooLarge(f"{size} bytes of JSON; a call holds arguments and an outcome of {MAX_TEXT_BYTES} each")
