"""Round trips without a connection (2026-07-28): a call that asks is answered with its questions and a sealed state.

The client answers by repeating the call with the answers and the state. Nothing is kept here meanwhile; the state holds
what was recorded, and its seal ties it to the caller and to this very call, so it opens for nothing else.
"""

import hashlib
import json
import logging
from typing import Final

from mcp_stateless.errors import CannotAsk, InvalidParams, ToolError
from mcp_stateless.exchange import Exchange
from mcp_stateless.journal import Journal, Records
from mcp_stateless.protocol.inbound import STATE_REFUSED, input_responses
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import MAKE_A_KEY, Rejected, seal, unseal
from mcp_stateless.questions import Question

PURPOSE: Final = "round"

_ASKING: Final = ("tools/call", "prompts/get", "resources/read")
"""The methods whose result may be a question (2026-07-28, multi round-trip requests)."""

_REPEATED: Final = ("inputResponses", "requestState", "_meta")
"""Params that differ between the rounds of one call."""

log = logging.getLogger(__name__)


def open_journal(exchange: Exchange, can_detach: bool = False) -> Journal:
    """The journal of this round: fresh for a call's first, else from the state the client brings.

    A legacy client can be asked if it brought a token that says so, and comes back by `Last-Event-ID`.

    Raises:
        InvalidParams: the state does not hold, or the answers are not an object of objects.
    """
    call, desk = exchange.call, exchange.environment.desk
    if not exchange.revision.modern:
        client = exchange.client if call.method == "tools/call" else None
        can_ask = client is not None and desk is not None and desk.polls(call, exchange.headers)
        capabilities = client.capabilities if client is not None and can_ask else {}
        return Journal(fresh(exchange), capabilities=capabilities, refusal=_no_way, can_detach=can_detach)
    if call.method not in _ASKING:
        return Journal(fresh(exchange), refusal=_not_here)
    if exchange.environment.keys is None:
        return Journal(fresh(exchange), refusal=_no_key, can_detach=can_detach)
    offered = input_responses(call.params) if "inputResponses" in call.params else {}
    records = _unsealed(exchange) if "requestState" in call.params else fresh(exchange)
    return Journal(records, offered=offered, capabilities=call.client_capabilities, can_detach=can_detach)


def input_required(exchange: Exchange, journal: Journal, name: str, fingerprint: str) -> Wire:
    """The result that asks.

    Raises:
        ToolError: the questions never come to an end, or what is recorded is too large to travel.
    """
    records = journal.ask_again(name)
    records.fingerprint = fingerprint
    requests = {key: question.to_wire() for key, question in journal.pending.items()}
    return {
        "resultType": "input_required",
        "inputRequests": requests,
        "requestState": _sealed(exchange, records, name),
    }


def fresh(exchange: Exchange) -> Records:
    return Records(call_id=exchange.environment.new_id(), started_at=exchange.environment.clock())


def _sealed(exchange: Exchange, records: Records, name: str) -> str:
    keys, settings = exchange.environment.keys, exchange.settings
    assert keys is not None, "without keys nothing is asked"
    body = json.dumps(records.to_json(), separators=(",", ":")).encode()
    if len(body) > settings.max_state_bytes:
        raise ToolError(
            f"{name} recorded {len(body)} bytes before its question; a state may have {settings.max_state_bytes}. "
            "Record references to data instead of the data"
        )
    expires_at = int(exchange.environment.clock()) + settings.state_ttl_s
    return seal(keys, PURPOSE, body, bound_to=_binding(exchange), expires_at=expires_at)


def _unsealed(exchange: Exchange) -> Records:
    keys, state = exchange.environment.keys, exchange.call.params["requestState"]
    assert keys is not None, "a call without keys does not come here"
    try:
        body = unseal(
            keys,
            PURPOSE,
            state if isinstance(state, str) else "",
            bound_to=_binding(exchange),
            now=exchange.environment.clock(),
            max_bytes=exchange.settings.max_state_bytes,
        )
    except Rejected as reason:
        log.warning("request state refused, reference %s: %s", exchange.reference, reason)
        raise InvalidParams(STATE_REFUSED) from reason
    return Records.from_json(json.loads(body))


def _binding(exchange: Exchange) -> tuple[str, ...]:
    """Caller, method and params of the call: what must be the same when the state comes back."""
    salient = {key: value for key, value in exchange.call.params.items() if key not in _REPEATED}
    text = json.dumps(salient, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return (exchange.principal.key, exchange.call.method, digest)


def _no_way(question: Question) -> ToolError:
    return CannotAsk(
        "This call cannot ask the user: that takes a client at 2026-07-28, or one at 2025-11-25 that polls and brought "
        "its token"
    )


def _not_here(question: Question) -> ToolError:
    return CannotAsk("A completion cannot ask the user; ask in the tool, prompt or resource")


def _no_key(question: Question) -> ToolError:
    log.error("A tool asked the client, and the server has no signing key. Set MCP_SIGNING_KEYS to one: %s", MAKE_A_KEY)
    return CannotAsk("This server is not set up to ask the user")
