"""The same deployment in processes: environments for HTTP and for work, the Invoke API between them, and the table."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_stateless.testing import Fleet, InvokeApi, Subprocess

ROOT: Final = Path(__file__).parents[2]
HANDLER: Final = "tests.tasks.server:lambda_handler"
ENVIRONMENTS: Final = 2
SETTINGS: Final = {
    "MCP_SIGNING_KEYS": "one key for every environment of these tests",
    "MCP_POLLING": "dynamodb",
    "MCP_WORKER_FUNCTION": "worker",
    # A call of minutes is one of some seconds here.
    "MCP_ROUND_HOLD_S": "0.6",
    "MCP_MIN_RETRY_MS": "100",
    "MCP_MAX_RETRY_MS": "300",
    "MCP_FLUSH_INTERVAL_MS": "50",
}


@dataclass(frozen=True, slots=True)
class Processes:
    """What answers HTTP, and the queue to what works."""

    fleet: Fleet
    api: InvokeApi


@contextmanager
def deployed(table: str) -> Iterator[Processes]:
    """Everything started, and ended with the context; the engine's address is in this process's environment."""
    environment = SETTINGS | {"MCP_CALL_TABLE": table}
    workers = Fleet([Subprocess(HANDLER, env=environment, cwd=ROOT) for _ in range(ENVIRONMENTS)], "first_free")
    with workers, InvokeApi(workers, concurrency=ENVIRONMENTS) as api:
        http = [Subprocess(HANDLER, env=environment | api.environment, cwd=ROOT) for _ in range(ENVIRONMENTS)]
        with Fleet(http) as fleet:
            workers.warm_up()
            fleet.warm_up()
            yield Processes(fleet, api)
