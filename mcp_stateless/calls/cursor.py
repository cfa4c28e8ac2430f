"""Event ids of a polled call: signed, so that a poll with a forged or foreign one costs one signature check, no read.

An id says which call, how far the client has come in it, how often it has polled and whether the call's answer was
delivered. It also carries the JSON-RPC id of the request, so that even a call whose record is gone can be answered.
"""

import json
from dataclasses import dataclass, replace
from typing import Final, Self

from mcp_stateless.principal import Principal
from mcp_stateless.protocol.envelope import RequestId
from mcp_stateless.protocol.sealing import KeyRing, seal, unseal

PURPOSE: Final = "event"

MAX_RPC_ID_BYTES: Final = 128
"""JSON-RPC ids over this are not carried in event ids: such a call runs in place."""

_MAX_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a client is in a call's stream."""

    call_id: str
    rpc_id: RequestId
    number: int = 0
    """The last log batch it was sent."""
    asked: int = 0
    """The last question it was sent."""
    polls: int = 0
    is_final: bool = False

    def next_poll(self) -> Self:
        """The cursor of the next reply: an id that comes twice ends the session of some clients."""
        return replace(self, polls=self.polls + 1)

    def event_id(self, keys: KeyRing, principal: Principal, until_ms: int) -> str:
        """The cursor as the client carries it, for as long as the call's record lasts."""
        fields = [self.call_id, self.rpc_id, self.number, self.asked, self.polls, int(self.is_final)]
        body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
        return seal(keys, PURPOSE, body, bound_to=(principal.key,), expires_at=until_ms // 1000 + EXPIRED_FOR_S)

    @classmethod
    def from_event_id(cls, event_id: str, keys: KeyRing, principal: Principal, now: float) -> Self:
        """Raises `Rejected` for what this server did not give to this caller."""
        body = unseal(keys, PURPOSE, event_id, bound_to=(principal.key,), now=now, max_bytes=_MAX_BYTES)
        call_id, rpc_id, number, asked, polls, is_final = json.loads(body.decode("utf-8", "surrogatepass"))
        return cls(call_id, rpc_id, number, asked, polls, bool(is_final))


EXPIRED_FOR_S: Final = 24 * 3600
"""How long after its record an id still opens, so that a client that comes late is told that the call has expired."""


def fits(rpc_id: RequestId) -> bool:
    """Whether event ids can carry this JSON-RPC id."""
    return len(json.dumps(rpc_id).encode()) <= MAX_RPC_ID_BYTES
