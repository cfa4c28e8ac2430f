"""The whole of a deployment on this machine: environments for HTTP and for work, the queue between them, the table."""

import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3

from mcp_stateless.calls.dynamodb import create_table
from mcp_stateless.testing import Environment, Fleet, InvokeApi
from mcp_stateless.testing.gateway import Gateway
from tests.calls.engine import running
from tests.emulator import tools
from tests.emulator.runtime import RuntimeEmulator
from tests.project.sam import ROOT, sam
from tests.soak.caller import Outcome, call
from tests.soak.faults import Dice, Freezing, Mortal, Reported, ThrottlingProxy

TABLE: Final = "soak-calls"
HANDLER: Final = "function.lambda_handler"
LOG: Final = "functions.log"
"""What all environments print, in the folder of the build."""
HTTP_TIMEOUT_S: Final = 28
WORKER_TIMEOUT_S: Final = 60
ARCHITECTURE: Final = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
SETTINGS: Final = {
    "MCP_POLLING": "dynamodb",
    "MCP_CALL_TABLE": TABLE,
    "MCP_WORKER_FUNCTION": "worker",
    "MCP_SIGNING_KEYS": "one key for every environment of the soak",
    "MCP_LOG_MESSAGES": "info",
    # Faster than in earnest, so that more happens in a minute.
    "MCP_FLUSH_INTERVAL_MS": "200",
    "MCP_MIN_RETRY_MS": "300",
    "MCP_MAX_RETRY_MS": "2000",
}


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, and how often: a share of the events, invocations or requests."""

    duplicated_events: float = 0
    lost_events: float = 0
    killed_workers: float = 0
    lost_reports: float = 0
    frozen_requests: float = 0
    throttled_requests: float = 0


@dataclass(frozen=True, slots=True)
class Deployment:
    """Environments that were started once and are used by one scenario after the other."""

    servers: tuple[RuntimeEmulator, ...]
    workers: tuple[RuntimeEmulator, ...]
    proxy: ThrottlingProxy
    queue: "Queue"

    def run(self, name: str, calls: int, callers: int, faults: Faults, *, patience_s: float) -> list[Outcome]:
        """Make that many calls, `callers` at once, while things go wrong. Each is given up after `patience_s`."""
        dice = Dice(name)
        servers = Fleet([Freezing(each, dice, faults.frozen_requests, 2) for each in self.servers], "first_free")
        mortals = [Mortal(each, dice, faults.killed_workers, within_s=0.8) for each in self.workers]
        workers = Reported(Fleet(mortals, "first_free"), servers, dice, 1 - faults.lost_reports)
        self.queue.use(workers, faults, dice)
        self.proxy.probability = faults.throttled_requests
        gateway = Gateway(servers, source="http_api", context_ms=HTTP_TIMEOUT_S * 1000)

        def one(rpc_id: int) -> Outcome:
            steps, pause_ms = 1 + rpc_id % 6, 40 + rpc_id * 37 % 160
            return call(gateway, rpc_id, steps, pause_ms, time.monotonic() + patience_s)

        with ThreadPoolExecutor(callers) as pool:
            outcomes = list(pool.map(one, range(1, calls + 1)))
        self.proxy.probability = 0
        self.queue.api.wait_until_idle(WORKER_TIMEOUT_S + 10)
        return outcomes


class Queue:
    """The queue of asynchronous invocations, with what goes wrong in it at the moment."""

    def __init__(self, concurrency: int) -> None:
        self._workers: Environment | None = None
        self._faults = Faults()
        self._dice = Dice("nothing yet")
        self.api = InvokeApi(
            self,
            concurrency=concurrency,
            duplicate=lambda: self._dice.chance(self._faults.duplicated_events),
            lose=lambda: self._dice.chance(self._faults.lost_events),
        )

    def use(self, workers: Environment, faults: Faults, dice: Dice) -> None:
        self._workers, self._faults, self._dice = workers, faults, dice

    def invoke(self, event: object, context_ms: int = 30_000) -> object:
        assert self._workers is not None
        return self._workers.invoke(event, context_ms)


@contextmanager
def deployed(folder: Path, servers: int, workers: int) -> Iterator[Deployment]:
    """Build, start everything, and end it with the context."""
    code = built(folder)
    with ExitStack() as stack:
        engine = stack.enter_context(running())
        proxy = stack.enter_context(ThrottlingProxy(engine.url, Dice("throttle"), 0))
        client = boto3.client(
            "dynamodb",
            endpoint_url=engine.url,
            region_name="us-east-1",
            aws_access_key_id="none",
            aws_secret_access_key="none",
        )
        create_table(client, TABLE)
        queue = Queue(workers)
        stack.enter_context(queue.api)
        environment = SETTINGS | engine.environment | {"AWS_ENDPOINT_URL_DYNAMODB": proxy.url}
        environment |= queue.api.environment

        output = stack.enter_context((folder / LOG).open("ab"))

        def started(count: int, timeout_s: int) -> tuple[RuntimeEmulator, ...]:
            options: dict[str, Any] = {"env": environment, "timeout_s": timeout_s, "output": output}
            return tuple(stack.enter_context(RuntimeEmulator(code, HANDLER, **options)) for _ in range(count))

        everything = Deployment(started(servers, HTTP_TIMEOUT_S), started(workers, WORKER_TIMEOUT_S), proxy, queue)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: each.invoke({}), [*everything.servers, *everything.workers]))
        yield everything


def built(folder: Path) -> Path:
    """What `sam build` makes for this machine, with the function of the soak in the place of the example."""
    overrides = ("--parameter-overrides", f"Runtime={tools.RUNTIME}", f"Architecture={ARCHITECTURE}")
    sam("build", "Server", *overrides, "--build-dir", str(folder), cwd=ROOT)
    code = folder / "Server"
    shutil.rmtree(code / "handler")
    shutil.copy(Path(__file__).with_name("function.py"), code)
    # Lambda's folder cannot be written to; here sixteen environments would compile the same at once.
    subprocess.run([str(tools.runtime_python()), "-m", "compileall", "-q", str(code)], check=True)
    return code
