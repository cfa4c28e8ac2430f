"""The cap of open long calls: each authenticated caller has so many places, and a call holds one until it ends.

A place that nobody gives back, because a worker or an invocation was lost, is free again once its call should have
ended. Anonymous callers are everybody at once, so they are not counted, and neither is anybody without a cap.
"""

import hashlib
import logging
from dataclasses import dataclass

from mcp_stateless.calls.record import LATE_MS, CallRecord, State
from mcp_stateless.calls.store import CallStore, StoreMisconfigured, StoreUnavailable
from mcp_stateless.errors import ToolError
from mcp_stateless.principal import Principal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Places:
    """The places of every caller of one server."""

    store: CallStore
    most: int
    """For each caller; 0: there is no cap."""

    async def take(self, record: CallRecord, asks: bool) -> None:
        """Take a place for a call that is about to be created; a call that has one keeps it. `asks`: its tool may ask.

        Raises:
            ToolError: its caller has none left.
            StoreUnavailable, StoreMisconfigured.
        """
        if not self._counts(record):
            return
        caller = _digest(record.request.principal)
        until_ms = _until_ms(record, asks)
        if not await self.store.admit(caller, record.call_id, until_ms, self.most, record.created_ms):
            calls = "1 call" if self.most == 1 else f"{self.most} calls"
            raise ToolError(f"You have {calls} running already; wait for one to end.")

    async def give_back(self, record: CallRecord) -> None:
        """The call has ended, or never began. If that cannot be written, the place is free later."""
        if not self._counts(record):
            return
        try:
            await self.store.leave(_digest(record.request.principal), record.call_id)
        except (StoreUnavailable, StoreMisconfigured) as error:
            log.warning("the place of call %s was not given back: %s", record.call_id, error)

    def _counts(self, record: CallRecord) -> bool:
        return self.most > 0 and not record.request.principal.is_anonymous


def _digest(principal: Principal) -> str:
    return hashlib.sha256(principal.key.encode("utf-8", "surrogatepass")).hexdigest()


def _until_ms(record: CallRecord, asks: bool) -> int:
    """When a call that is looked after has ended at the latest; one that asks may wait as long as it is kept."""
    request = record.request
    if record.state is State.ASKING or (asks and request.wire in ("task", "rounds")):
        return record.until_ms
    attempt_ms = request.timeout_s * 1000 + LATE_MS
    return min(record.until_ms, record.due_ms + attempt_ms * record.max_attempts)
