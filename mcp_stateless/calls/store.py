"""Where call records lie: the contract of a store.

An implementation keeps these promises, and the contract tests hold it to them:

- Each method is one decision, carried out whole or not at all, whoever else moves the same record at the same time.
- What a method returned is there for the next one, from any process (strongly consistent).
- A record past `until_ms` counts as gone at once, deleted or not. Only its id stays taken as long as it lies there.
- Arguments may be kept beside the record: a claim returns them, elsewhere they may be empty. Maps come in any order.
- JSON comes back as it was given: no float becomes another number, no empty text or list is lost.
- Errors are those named below and no others: what the service behind it raises is translated inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from mcp_stateless.calls.record import CallRecord, Move
from mcp_stateless.errors import McpStatelessError
from mcp_stateless.protocol.revisions import Wire

MAX_TEXT_BYTES: Final = 5_900_000
"""The longest arguments and the longest outcome, in UTF-8: about what a request or a reply on Lambda can carry."""


class StoreUnavailable(McpStatelessError):
    """The store did not answer in time, or throttles. The same call may go through later."""


class StoreMisconfigured(McpStatelessError):
    """There is no such table, or it may not be used. The message names the table and the fix, for the log only."""


class RecordTooLarge(McpStatelessError):
    """More than the store can hold for one call."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One batch of log messages. `number` orders the batches of a call, and is what a reader came to."""

    number: int
    messages: Sequence[Wire]


def entry_number(attempt: int, number: int) -> int:
    """The number of an attempt's batch among all batches of a call."""
    return attempt * 10**9 + number


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A call as one read finds it, and the log batches after the number that was asked for."""

    record: CallRecord
    entries: Sequence[Entry]


class CallStore(Protocol):
    """See the module for what every implementation promises."""

    async def create(self, record: CallRecord) -> None:
        """Put a new record.

        Raises:
            MoveRefused: there is one with this id; it carries that one, or None if that one has expired.
            RecordTooLarge: its arguments cannot be held.
            StoreUnavailable, StoreMisconfigured.
        """

    async def apply(self, call_id: str, move: Move, now_ms: int) -> CallRecord:
        """Carry out a move, and return the record after it.

        Raises:
            MoveRefused: the record does not allow it, or there is none.
            RecordTooLarge: what the move adds cannot be held; nothing was changed.
            StoreUnavailable, StoreMisconfigured.
        """

    async def append(self, call_id: str, attempt: int, number: int, messages: Sequence[Wire]) -> None:
        """Add a log batch of an attempt, `number` counting from 1 in it. Not fenced: an attempt has its own numbers.

        Raises:
            RecordTooLarge, StoreUnavailable, StoreMisconfigured.
        """

    async def read(self, call_id: str, after: int, now_ms: int) -> Snapshot | None:
        """The record and the log batches after a number (0: all of them); None: there is none, or it has expired.

        The record comes with its outcome, but without its arguments if those are kept beside it.

        Raises:
            StoreUnavailable, StoreMisconfigured.
        """

    async def admit(self, caller: str, call_id: str, until_ms: int, most: int, now_ms: int) -> bool:
        """Give a call one of the `most` places of its caller; False: as many other calls have one.

        A call that has a place keeps it, for the new time. A place whose time is past is free. `caller` is a digest,
        `until_ms` is at most that of a record.

        Raises:
            StoreUnavailable, StoreMisconfigured.
        """

    async def leave(self, caller: str, call_id: str) -> None:
        """Give the place of a call back, if it has one. Nothing is made by this where there was nothing.

        Raises:
            StoreUnavailable, StoreMisconfigured.
        """
