"""One call on its way through the server: what came with it, and what it is answered from."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mcp_stateless.calls.client_token import HEADER, ClientToken
from mcp_stateless.calls.desk import CallDesk
from mcp_stateless.content import CacheHint
from mcp_stateless.context import Headers
from mcp_stateless.identity import Grants, has_scope
from mcp_stateless.invocation import Invocation
from mcp_stateless.notifications import Collector
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol.inbound import Call, LogLevel
from mcp_stateless.protocol.revisions import Revision
from mcp_stateless.protocol.sealing import KeyRing
from mcp_stateless.settings import Settings

ID_BYTES: Final = 16
"""Random bytes of an id; 128 bits are what the specification wants of an unguessable one."""


def random_id() -> str:
    return secrets.token_urlsafe(ID_BYTES)


@dataclass(frozen=True, slots=True)
class Environment:
    """What a server has from outside, the same for all its calls. Tests put in their own clock and ids."""

    settings: Settings
    keys: KeyRing | None = None
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    new_id: Callable[[], str] = random_id
    desk: CallDesk | None = None
    """Where long calls are taken in; None: every call runs in place."""
    grants: Grants = has_scope


@dataclass(slots=True)
class Exchange:
    """One call, from dispatch to answer."""

    call: Call
    environment: Environment
    headers: Headers
    invocation: Invocation
    principal: Principal = ANONYMOUS
    collector: Collector = field(init=False)
    stream: bytes | None = None
    """An SSE body that answers the call instead of a result: it will come later."""
    reply_headers: dict[str, str] = field(default_factory=dict)
    cache_hint: CacheHint | None = None
    """Of the resource that is read, if it has its own."""

    def __post_init__(self) -> None:
        self.collector = Collector(self.call, self._log_level())

    @property
    def settings(self) -> Settings:
        return self.environment.settings

    @property
    def revision(self) -> Revision:
        return self.call.revision

    @property
    def client(self) -> ClientToken | None:
        """What a legacy client's token says, if it brought one that holds."""
        token, keys = self.headers.get(HEADER), self.environment.keys
        if token is None or keys is None or self.environment.desk is None:
            return None
        return ClientToken.opened(token, keys, self.principal, self.environment.clock())

    @property
    def reference(self) -> str:
        """What ties an answer to the log: the Lambda request id, else a random one."""
        return str(getattr(self.invocation.context, "aws_request_id", None) or self.environment.new_id())

    def _log_level(self) -> LogLevel | None:
        offered = self.settings.log_messages
        if offered == "off":
            return None
        # Legacy clients set the level in a request of its own, which a server without state cannot remember.
        return self.call.log_level if self.revision.modern else offered
