"""State-only rounds (2026-07-28): a long call for clients that declare no tasks.

Each answer is held for a while and then is `input_required` with a state and, mostly, without questions, which clients
take as "repeat the call". The state names the running call, whatever arguments come with it. Clients count their rounds
and stop at ten, some at nine; before that the call ends with a ticket, and goes on.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final, TypeAlias

from mcp_stateless.calls.desk import EXPIRED, CallDesk, input_requests, open_questions
from mcp_stateless.calls.record import CallRecord, Progress
from mcp_stateless.calls.store import Snapshot, StoreMisconfigured, StoreUnavailable
from mcp_stateless.calls.tickets import result_of, ticket
from mcp_stateless.errors import InvalidParams, ToolError
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.inbound import STATE_REFUSED, input_responses
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import Rejected, seal, unseal

PURPOSE: Final = "wait"

Round: TypeAlias = tuple[Wire, Progress | None]
"""The answer of a round, and the latest progress for whoever can send a notification beside it."""

PREFIX: Final = "wait."
"""Tells these states from those of round trips in place before anything is opened."""

EVERYTHING: Final = 10**15 - 1
"""Above every log batch: the rounds do not carry log messages."""

log = logging.getLogger(__name__)


def is_waiting(params: Mapping[str, object]) -> bool:
    """Whether a call is repeated to hear of one that runs already."""
    state = params.get("requestState")
    return isinstance(state, str) and state.startswith(PREFIX)


async def first_round(desk: CallDesk, record: CallRecord, principal: Principal, done: int, hold_s: float) -> Round:
    """The answer to the request that started the call; `done` rounds went before, with questions in place."""
    return await _round(desk, record.call_id, record.request.tool, principal, done + 1, hold_s, {})


async def next_round(
    desk: CallDesk, params: Mapping[str, object], tool: str, principal: Principal, hold_s: float
) -> Round:
    """The answer to a repeated call. Answers to questions are recorded first.

    Raises:
        InvalidParams: the state is not this caller's, or not of this tool.
        ToolError: the call is gone, or the store does not answer.
    """
    state = str(params["requestState"]).removeprefix(PREFIX)
    try:
        body = unseal(desk.keys, PURPOSE, state, bound_to=(principal.key, tool), now=desk.clock(), max_bytes=256)
    except Rejected as reason:
        log.warning("request state refused: %s", reason)
        raise InvalidParams(STATE_REFUSED) from reason
    call_id, done = json.loads(body)
    answers = input_responses(params) if params.get("inputResponses") else {}
    return await _round(desk, call_id, tool, principal, done + 1, hold_s, answers)


async def _round(
    desk: CallDesk,
    call_id: str,
    tool: str,
    principal: Principal,
    number: int,
    hold_s: float,
    answers: Mapping[str, Wire],
) -> Round:
    try:
        for key, answer in answers.items():
            await desk.answer(call_id, key, {"result": answer})
        found = await desk.awaited(call_id, EVERYTHING, hold_s, _is_news)
    except (StoreUnavailable, StoreMisconfigured) as error:
        log.warning("call %s could not be read: %s", call_id, error)
        return _again(desk, call_id, tool, principal, number, {}), None
    if found is None:
        raise ToolError(EXPIRED)
    if found.record.state.is_final:
        return result_of(found.record), None
    if number > desk.settings.max_rounds:
        return ticket(desk, found.record, principal), None
    return _again(desk, call_id, tool, principal, number, input_requests(found.record)), found.record.progress


def _again(desk: CallDesk, call_id: str, tool: str, principal: Principal, number: int, asked: Wire) -> Wire:
    body = json.dumps([call_id, number], separators=(",", ":")).encode()
    expires_at = int(desk.clock()) + desk.settings.call_ttl_s
    state = seal(desk.keys, PURPOSE, body, bound_to=(principal.key, tool), expires_at=expires_at)
    # Some clients need the key even where there is no question in it.
    return {"resultType": "input_required", "inputRequests": asked, "requestState": PREFIX + state}


def _is_news(snapshot: Snapshot) -> bool:
    return snapshot.record.state.is_final or bool(open_questions(snapshot.record))
