"""The client token: a self-contained `Mcp-Session-Id` for clients of a server that polls (2025-11-25).

It says which revision was negotiated and what the client can be asked, and has a nonce that tells clients apart.
Nothing about it is stored, nobody is required to bring it, and one that does not hold counts as none: a client that is
answered 404 would be told to start over, which no SDK does.
"""

import base64
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from mcp_stateless.principal import Principal
from mcp_stateless.protocol.envelope import RequestId
from mcp_stateless.protocol.sealing import KeyRing, Rejected, seal, unseal

HEADER: Final = "mcp-session-id"
PURPOSE: Final = "client"

_MAX_BYTES: Final = 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientToken:
    """What is known of a legacy client after its handshake."""

    nonce: str
    capabilities: Mapping[str, object]
    """Of `ClientCapabilities`, what says what the client can be asked."""

    def sealed(self, keys: KeyRing, principal: Principal, expires_at: int) -> str:
        body = json.dumps([self.nonce, self.capabilities], separators=(",", ":")).encode()
        return seal(keys, PURPOSE, body, bound_to=(principal.key,), expires_at=expires_at)

    @classmethod
    def opened(cls, token: str, keys: KeyRing, principal: Principal, now: float) -> Self | None:
        try:
            body = unseal(keys, PURPOSE, token, bound_to=(principal.key,), now=now, max_bytes=_MAX_BYTES)
        except Rejected as reason:
            log.info("a client token counts as none: %s", reason)
            return None
        nonce, capabilities = json.loads(body)
        return cls(nonce, capabilities)

    def call_id(self, rpc_id: RequestId) -> str:
        """The id of this client's call with that JSON-RPC id, which does not repeat within a session."""
        digest = hashlib.sha256(json.dumps([self.nonce, rpc_id]).encode()).digest()
        return base64.urlsafe_b64encode(digest[:16]).rstrip(b"=").decode()


def asked_of(capabilities: object) -> Mapping[str, object]:
    """The part of declared capabilities that says what may be asked, cut to what this server knows."""
    declared = capabilities if isinstance(capabilities, dict) else {}
    kept: dict[str, object] = {}
    for name, details in (("elicitation", ("form", "url")), ("sampling", ()), ("roots", ())):
        value = declared.get(name)
        if isinstance(value, dict):
            kept[name] = {detail: {} for detail in details if detail in value}
    return kept
