"""`check_call`: an ordinary tool by which a client without any other way comes back for a long result."""

import json
import logging
from typing import Final

from mcp_stateless.calls.desk import EXPIRED, CallDesk
from mcp_stateless.calls.record import CallRecord, State
from mcp_stateless.calls.store import StoreMisconfigured, StoreUnavailable
from mcp_stateless.errors import ToolError
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import Rejected, seal, unseal

PURPOSE: Final = "ticket"

TOOL: Final = "check_call"

log = logging.getLogger(__name__)


def ticket(desk: CallDesk, record: CallRecord, principal: Principal) -> Wire:
    """The result that tells how to go on."""
    body = record.call_id.encode()
    sealed = seal(desk.keys, PURPOSE, body, bound_to=(principal.key,), expires_at=record.until_ms // 1000)
    text = f"{_told(record)}. Call {TOOL} with this ticket for the result: {sealed}"
    return {"content": [{"type": "text", "text": text}], "isError": False}


async def check(desk: CallDesk, sealed: str, principal: Principal, hold_s: float) -> Wire:
    """The result of the call of a ticket, or how far it is. Waits up to `hold_s` for it: models call again at once.

    Raises:
        ToolError: the ticket does not hold, its call is gone, or the store does not answer.
    """
    try:
        body = unseal(desk.keys, PURPOSE, sealed, bound_to=(principal.key,), now=desk.clock(), max_bytes=256)
        found = await desk.awaited(body.decode(), 0, hold_s, lambda snapshot: snapshot.record.state.is_final)
    except Rejected as reason:
        log.warning("a ticket was refused: %s", reason)
        raise ToolError("This ticket does not hold. Call the tool again.") from reason
    except (StoreUnavailable, StoreMisconfigured) as error:
        log.warning("a ticket could not be looked up: %s", error)
        raise ToolError("The call cannot be looked up right now. Try again in a moment.") from error
    if found is None:
        raise ToolError(EXPIRED)
    if found.record.outcome is None:
        text = f"{_told(found.record)}. Call {TOOL} again with the same ticket."
        return {"content": [{"type": "text", "text": text}], "isError": False}
    return result_of(found.record)


def result_of(record: CallRecord) -> Wire:
    """A finished call's result, also where it ended with a JSON-RPC error.

    Raises:
        ToolError: it ended with one.
    """
    outcome = json.loads(record.outcome or "{}")
    if "error" in outcome:
        raise ToolError(str(outcome["error"].get("message", "")))
    result: Wire = outcome["result"]
    return result


def _told(record: CallRecord) -> str:
    if record.state is State.ASKING and record.open:
        # Who has a ticket has no rounds left to be asked in, and a model would check for ever.
        tool = record.request.tool
        raise ToolError(f"{tool} asks for an answer, which cannot be given in this call any more. Call {tool} again.")
    if record.progress is None:
        return f"{record.request.tool} is still running"
    total = "" if record.progress.total is None else f" of {record.progress.total:g}"
    message = "" if record.progress.message is None else f" ({record.progress.message})"
    return f"{record.request.tool} is still running, at {record.progress.progress:g}{total}{message}"
