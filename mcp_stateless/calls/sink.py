"""Progress and log messages of a stored call: gathered, and written at most once an interval.

The latest progress wins; log messages go in batches. Each write of progress also asks whether the call is still this
worker's: when it was cancelled or given to another attempt, `lost` is set and the worker stops.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

from mcp_stateless.calls.insist import insist
from mcp_stateless.calls.record import CallRecord, MoveRefused, Progress, Report
from mcp_stateless.calls.store import CallStore, RecordTooLarge, StoreMisconfigured, StoreUnavailable
from mcp_stateless.notifications import log_message, severities
from mcp_stateless.protocol.inbound import LogLevel
from mcp_stateless.protocol.revisions import Wire

CHECK_S: Final = 15.0
"""How often a tool that reports nothing is looked after: this late a cancel or a lost call is seen."""

MOST_MESSAGES: Final = 1000
"""Log messages kept for one call; a tool that logs in a tight loop loses the later ones, not its result."""

log = logging.getLogger(__name__)


class StoreSink:
    """The sink of one attempt; used as a context manager around the run, which flushes what is left at its end."""

    def __init__(
        self,
        record: CallRecord,
        store: CallStore,
        *,
        interval_s: float,
        log_level: LogLevel | None,
        now_ms: Callable[[], int],
    ) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._record = record
        self._store = store
        self._interval_s = interval_s
        self._levels = severities(log_level)
        self._now_ms = now_ms
        self._progress = record.progress
        self._version = 0 if record.progress is None else record.progress.version
        self._messages: list[Wire] = []
        self._count = 0
        self._batches = 0
        self._unsent: tuple[int, list[Wire]] | None = None
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        latest = -math.inf if self._progress is None else self._progress.progress
        if progress > latest:
            self._version += 1
            self._progress = Progress(progress, total, message, self._version)
            self._news.set()

    async def log(self, level: LogLevel, data: object, logger_name: str | None) -> None:
        if level in self._levels and self._count < MOST_MESSAGES:
            self._count += 1
            self._messages.append(log_message(level, data, logger_name))
            self._news.set()

    async def __aenter__(self) -> Self:
        self._flushing = asyncio.ensure_future(self._flush_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._writing:  # A batch cut off half-way might come after the result, or not at all.
            self._flushing.cancel()
        await asyncio.wait({self._flushing})
        if not self.lost.done():
            # Progress is not worth a write any more, the result comes next; messages would be lost.
            await self._flush_messages(is_last=True)

    async def _flush_on(self) -> None:
        """One interval after news at the latest, they are written; without news, the call is looked after now and then.

        The first news wait as well: a tool that is done within an interval costs no flush at all.
        """
        while not self.lost.done():
            try:
                # Not `wait_for`: up to Python 3.11 it forgets a cancellation that comes together with the news.
                async with asyncio.timeout(CHECK_S):
                    await self._news.wait()
                await asyncio.sleep(self._interval_s)
            except TimeoutError:
                pass
            self._news.clear()
            async with self._writing:
                await self._report()
                if not self.lost.done():
                    await self._flush_messages()

    async def _report(self) -> None:
        seen = self._progress
        try:
            await self._store.apply(self._record.call_id, Report(self._record.attempt, seen), self._now_ms())
        except MoveRefused as refused:
            log.info("call %s is not this worker's any more: %s", self._record.call_id, refused)
            self.lost.set_result(None)
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("progress of call %s was not written: %s", self._record.call_id, error)

    async def _flush_messages(self, *, is_last: bool = False) -> None:
        """Write what is there as one batch. One that the store does not take stays, and is written again as it was."""
        if self._unsent is None:
            if not self._messages:
                return
            self._batches += 1
            self._unsent, self._messages = (self._batches, self._messages), []
        number, messages = self._unsent

        def write() -> Awaitable[None]:
            return self._store.append(self._record.call_id, self._record.attempt, number, messages)

        try:
            await (insist("a log batch", write) if is_last else write())
        except StoreUnavailable as error:
            log.warning("log messages of call %s are not written yet: %s", self._record.call_id, error)
            return
        except (StoreMisconfigured, RecordTooLarge) as error:
            log.warning("log messages of call %s were dropped: %s", self._record.call_id, error)
        self._unsent = None
        if is_last:
            await self._flush_messages(is_last=True)
