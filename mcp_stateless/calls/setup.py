"""Put the parts of long calls together as the settings say, once, when the server is made.

On Lambda that is the init phase: the clients of AWS are made here, and what is missing is said here.
"""

import os
from collections.abc import Callable
from typing import Final

from mcp_stateless.calls.desk import CallDesk
from mcp_stateless.calls.launch import LambdaLauncher, Launcher, ThreadLauncher, lambda_client
from mcp_stateless.calls.store import CallStore
from mcp_stateless.calls.worker import Worker
from mcp_stateless.errors import ConfigurationError
from mcp_stateless.protocol.sealing import MAKE_A_KEY, KeyRing
from mcp_stateless.registry import Registry
from mcp_stateless.settings import Settings

ON_LAMBDA: Final = "AWS_LAMBDA_FUNCTION_NAME"
"""Environment variable that Lambda sets in every function."""


def set_up(
    registry: Registry,
    settings: Settings,
    keys: KeyRing | None,
    clock: Callable[[], float],
    new_id: Callable[[], str],
) -> tuple[Worker, CallDesk]:
    """A worker and a desk on the same store.

    Raises:
        ConfigurationError: polling cannot work with these settings in this place.
    """
    if keys is None:
        raise ConfigurationError(
            f"MCP_POLLING={settings.polling} needs a signing key that all environments share. Set MCP_SIGNING_KEYS to "
            f"one; make it with: {MAKE_A_KEY}"
        )
    store = _store(settings)
    worker = Worker(registry, settings, store, clock)
    return worker, CallDesk(store, _launcher(settings, worker), keys, settings, clock, new_id)


def _store(settings: Settings) -> CallStore:
    if settings.polling == "memory":
        if ON_LAMBDA in os.environ:
            raise ConfigurationError(
                "MCP_POLLING=memory is for local runs: on Lambda the next request may reach another environment. "
                "Set it to dynamodb, and MCP_CALL_TABLE to a table"
            )
        from mcp_stateless.calls.memory import MemoryCallStore

        return MemoryCallStore()
    if not settings.call_table:
        raise ConfigurationError("MCP_POLLING=dynamodb needs MCP_CALL_TABLE, the name of the table of the calls")
    from mcp_stateless.calls.dynamodb import DynamoDBCallStore

    return DynamoDBCallStore(settings.call_table, lifetime_s=settings.call_ttl_s)


def _launcher(settings: Settings, worker: Worker) -> Launcher:
    if settings.worker_function:
        return LambdaLauncher(settings.worker_function, lambda_client())
    if ON_LAMBDA in os.environ:
        raise ConfigurationError(
            "MCP_POLLING on Lambda needs MCP_WORKER_FUNCTION, the function that works on the calls: a thread of this "
            "one would be frozen with the reply"
        )
    return ThreadLauncher(worker.work)
