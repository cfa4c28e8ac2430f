"""How a `tools/call` becomes a long call, and what its first answer is on each wire."""

from collections.abc import Mapping
from typing import Final

from mcp_stateless.calls import polled, tasks, tickets, waiting
from mcp_stateless.calls.desk import CallDesk, Caller
from mcp_stateless.calls.record import WireName
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.exchange import Exchange
from mcp_stateless.journal import Records
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.questions import Question

GATEWAY_HOLD_S: Final = 20.0
"""How long a round is held behind API Gateway, which ends a request after 29 or 30 s."""

DIRECT_HOLD_S: Final = 50.0
"""The same where nothing cuts requests; hosts want the headers of a reply within 60 s."""


async def take_in(
    desk: CallDesk,
    wire: WireName,
    exchange: Exchange,
    tool: Tool,
    arguments: Mapping[str, object],
    records: Records,
    fingerprint: str,
    asked: Mapping[str, Question] | None = None,
) -> Wire:
    """The call runs in other invocations; this one only says how to come back.

    Raises:
        CallNotStarted: nothing will run, and the caller gets an error instead of an id.
        ToolError: the arguments are too large, or the caller has too many calls open.
    """
    principal = exchange.principal
    records.fingerprint = fingerprint
    caller = Caller(principal, exchange.headers, exchange.client)
    record = await desk.accept(exchange.call, tool, arguments, wire, caller, records, asked)
    match wire:
        case "polled":
            exchange.stream = polled.primed(desk, record, principal)
            return {}
        case "task":
            return tasks.created(desk, record, principal)
        case "ticket":
            return tickets.ticket(desk, record, principal)
        case "rounds":
            answered = await waiting.first_round(desk, record, principal, records.rounds, hold_s(exchange))
            return await _with_progress(answered, exchange)


async def next_round(desk: CallDesk, exchange: Exchange, tool: Tool) -> Wire:
    """The answer to a call that is repeated to hear of one that runs already; see `waiting.next_round`."""
    params, principal = exchange.call.params, exchange.principal
    answered = await waiting.next_round(desk, params, tool.name, principal, hold_s(exchange))
    return await _with_progress(answered, exchange)


def hold_s(exchange: Exchange) -> float:
    """How long this request may be held."""
    invocation, chosen = exchange.invocation, exchange.settings.round_hold_s
    if chosen is None:
        chosen = GATEWAY_HOLD_S if invocation.source in ("http_api", "rest_api") else DIRECT_HOLD_S
    return invocation.time_for(chosen)


async def _with_progress(answered: waiting.Round, exchange: Exchange) -> Wire:
    """The latest progress goes beside an interim result, for a caller that gave a token and takes SSE."""
    result, progress = answered
    if progress is not None:
        await exchange.collector.progress(progress.progress, progress.total, progress.message)
    return result
