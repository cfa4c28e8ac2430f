"""Long calls as on Lambda, on one machine: a table in a local DynamoDB, and worker processes behind the Invoke API.

What `mcp-stateless dev --dynamodb` starts beside its HTTP server. It never touches an account: without the address of
a local DynamoDB it refuses.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mcp_stateless.errors import ConfigurationError
from mcp_stateless.testing.environments import Fleet, InvocationError, Subprocess
from mcp_stateless.testing.invoke_api import InvokeApi

ENDPOINT: Final = "AWS_ENDPOINT_URL_DYNAMODB"
INVOKE_ENDPOINT: Final = "AWS_ENDPOINT_URL_LAMBDA"
TABLE: Final = "mcp-calls"
LONGEST_MS: Final = 900_000
"""How long a worker may run, as on Lambda."""


@contextmanager
def local_workers(handler: str, folder: Path, count: int) -> Iterator[None]:
    """Start workers with the Lambda handler `module:attribute`, and let this process's environment lead to them.

    Do so before a server is made here: it reads the environment once.

    Raises:
        ConfigurationError: there is no local DynamoDB, or the workers do not start.
    """
    if ENDPOINT not in os.environ:
        raise ConfigurationError(
            f"{ENDPOINT} is not set: let it name a DynamoDB on this machine, such as http://127.0.0.1:8001"
        )
    os.environ.update(_settings())
    with (
        Fleet([Subprocess(handler, cwd=folder) for _ in range(count)], "first_free") as workers,
        InvokeApi(workers, concurrency=count, context_ms=LONGEST_MS) as api,
    ):
        os.environ[INVOKE_ENDPOINT] = api.environment[INVOKE_ENDPOINT]
        _make_table()
        try:
            workers.warm_up()
        except InvocationError as error:
            raise ConfigurationError(f"A worker did not start with {handler}: {error}") from error
        yield


def _settings() -> dict[str, str]:
    """What every process has in common. Credentials of the developer are kept: tools may need them."""
    import boto3

    session = boto3.Session()
    credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    return {
        **({} if session.get_credentials() else credentials),
        "AWS_DEFAULT_REGION": session.region_name or "us-east-1",
        "MCP_POLLING": "dynamodb",
        "MCP_CALL_TABLE": TABLE,
        "MCP_WORKER_FUNCTION": "worker",
        "MCP_SIGNING_KEYS": os.environ.get("MCP_SIGNING_KEYS") or secrets.token_urlsafe(32),
    }


def _make_table() -> None:
    import boto3

    from mcp_stateless.calls.dynamodb import create_table

    client = boto3.client("dynamodb")
    if TABLE not in client.list_tables()["TableNames"]:
        create_table(client, TABLE)
