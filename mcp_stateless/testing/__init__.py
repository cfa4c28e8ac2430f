"""A test kit for servers on AWS Lambda: real events, separate environments, real and simple MCP clients. No network.

- `Client`: a small synchronous MCP client for an author's unit tests;
- `InProcess`, `Subprocess`, `Fleet`: the execution environments that answer, one or many, fresh or reused;
- `events`: the events of every source, from a method and a path or from an HTTP request;
- `transport.LambdaTransport` (needs httpx) and `transport_httpx2.LambdaTransport` (needs httpx2, which the official
  client 2.x brings): a real MCP client in front of Lambda events;
- `python -m mcp_stateless.testing module:handler`: the same behind a local port.
"""

from mcp_stateless.testing.client import CallResult, Client, RequestError
from mcp_stateless.testing.environments import Environment, Fleet, InProcess, InvocationError, Subprocess
from mcp_stateless.testing.events import LambdaContext, lambda_context
from mcp_stateless.testing.invoke_api import InvokeApi

__all__ = [
    "CallResult",
    "Client",
    "Environment",
    "Fleet",
    "InProcess",
    "InvocationError",
    "InvokeApi",
    "LambdaContext",
    "RequestError",
    "Subprocess",
    "lambda_context",
]
