"""The error tree of the package.

    McpStatelessError
    ├── ConfigurationError            a server, tool or setting is wrong: raised at registration or start-up
    ├── ToolError                     a tool says what went wrong; its text reaches the model
    │   ├── ArgumentError             the arguments of a call do not fit the tool's parameters
    │   ├── AskError                  the client answered a question with an error
    │   ├── StepError                 a recorded step failed; raised again by every replay
    │   ├── CannotAsk                 the client cannot be asked in this call
    │   └── NonDeterministicTool      a replay took another way than the run before it
    ├── Unauthorized                  HTTP 401: who is calling could not be proved
    ├── InsufficientScope             HTTP 403: the caller is known, and may not do this
    └── ProtocolError                 a request is answered with a JSON-RPC error
        ├── ParseError                -32700  the body is not JSON
        ├── InvalidRequest            -32600  the body is not one well-formed JSON-RPC message
        ├── MethodNotFound            -32601  no such method in this revision
        ├── InvalidParams             -32602  the params do not fit the method
        │   └── ResourceNotFound      -32602  (-32002 before 2026-07-28)
        ├── InternalError             -32603  the fault is ours; the reason is in the log only
        ├── CallNotStarted            -32603  a long-running call was not taken in; nothing runs
        ├── HeaderMismatch            -32020  a mirrored header is missing, malformed or contradicts the body
        ├── MissingClientCapability   -32021  the request does not declare what the call needs
        └── UnsupportedVersion        -32022  the protocol version is not served

Protocol errors carry the code and the data of the wire; how a code becomes an HTTP status is a table in
`protocol/inbound.py`. Messages of protocol errors are fixed sentences: they never echo input.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar


class McpStatelessError(Exception):
    """Base of everything this package raises on purpose."""


class ConfigurationError(McpStatelessError):
    """A server, tool or setting is wrong. The message names the thing and the fix."""


class ToolError(McpStatelessError):
    """Raise it in a tool to tell the model what went wrong: its text is the result's text, with `isError` set."""


class ArgumentError(ToolError):
    """The arguments of a call do not fit the parameters. The text is for the model: which field, and why."""


class StepError(ToolError):
    """A step of a call failed. The failure is recorded: every replay raises it again, none runs the step."""


class AskError(ToolError):
    """The client answered a question with a JSON-RPC error, whose message this is. It is an answer, and recorded."""


class CannotAsk(ToolError):
    """This call has no way to ask the client: it speaks an older revision, or the server cannot seal a state."""


class NonDeterministicTool(ToolError):
    """A replay took another way than the run before it, so its recorded answers and steps mean nothing."""


class Unauthorized(McpStatelessError):
    """Who is calling could not be proved. The text says why, for the log; the caller is told one fixed sentence."""

    def __init__(self, reason: str, *, was_sent: bool = True) -> None:
        """`was_sent`: whether there was anything to verify at all."""
        super().__init__(reason)
        self.was_sent = was_sent


class InsufficientScope(McpStatelessError):
    """The caller is known and lacks scopes. `scopes` are all that the operation needs."""

    def __init__(self, scopes: Sequence[str]) -> None:
        super().__init__(f"needs the scopes {' '.join(scopes)}")
        self.scopes = tuple(scopes)


class ProtocolError(McpStatelessError):
    """A request that is answered with a JSON-RPC error: `code`, `message` and `data` go to the wire as they are."""

    code: ClassVar[int]

    def __init__(self, message: str, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class ParseError(ProtocolError):
    code = -32700


class InvalidRequest(ProtocolError):
    code = -32600


class MethodNotFound(ProtocolError):
    code = -32601


class InvalidParams(ProtocolError):
    code = -32602


class ResourceNotFound(InvalidParams):
    """The one error whose code depends on the era: -32002 in legacy revisions, -32602 since 2026-07-28."""

    legacy_code: ClassVar[int] = -32002

    def __init__(self, uri: str) -> None:
        super().__init__("Resource not found", {"uri": uri})


class InternalError(ProtocolError):
    code = -32603


class CallNotStarted(ProtocolError):
    code = -32603


class HeaderMismatch(ProtocolError):
    code = -32020


class MissingClientCapability(ProtocolError):
    code = -32021

    def __init__(self, required: Mapping[str, object], message: str | None = None) -> None:
        super().__init__(
            message or "This call needs a client capability that the request does not declare",
            {"requiredCapabilities": required},
        )


class UnsupportedVersion(ProtocolError):
    code = -32022

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__(
            f"Unsupported protocol version; supported: {', '.join(supported)}",
            {"supported": list(supported), "requested": requested},
        )
