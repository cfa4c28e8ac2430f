"""Start a work invocation for a call: another Lambda function, or a thread of this process.

The event carries the call's id and nothing else; everything the worker needs is in the record.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from mcp_stateless.errors import McpStatelessError

WORK_KEY: Final = "mcp_stateless.work"
"""The key of a work event: `{"mcp_stateless.work": "<call id>"}`."""

log = logging.getLogger(__name__)

Work = Callable[[str], Awaitable[None]]


class LaunchFailed(McpStatelessError):
    """The worker could not be started. The text says why, for the log."""


class Launcher(Protocol):
    """Starts workers. Delivery is at least once: a worker that comes second finds the call claimed and ends."""

    async def launch(self, call_id: str) -> None:
        """Return when the start is accepted.

        Raises:
            LaunchFailed: it is not, and will not be carried out.
        """


class ThreadLauncher:
    """Works in a thread of this process, on a loop of its own. For local runs: Lambda would freeze the thread."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def launch(self, call_id: str) -> None:
        threading.Thread(target=self._run, args=(call_id,), name=f"mcp-work:{call_id}", daemon=True).start()

    def _run(self, call_id: str) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._work(call_id))
        except Exception:  # A thread's boundary: nobody above it would see the error.
            log.exception("the work on call %s broke off", call_id)
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()


class Invoker(Protocol):
    """The part of boto3's Lambda client that is used."""

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> Mapping[str, object]: ...


class LambdaLauncher:
    """Asynchronous invocation of the worker function (`InvocationType` Event)."""

    def __init__(self, function_name: str, client: Invoker) -> None:
        self._function_name = function_name
        self._client = client

    async def launch(self, call_id: str) -> None:
        payload = b'{"%s":"%s"}' % (WORK_KEY.encode(), call_id.encode())
        try:
            await asyncio.to_thread(
                self._client.invoke, FunctionName=self._function_name, InvocationType="Event", Payload=payload
            )
        except Exception as error:  # The boundary to boto3: throttling, permissions, a missing function.
            raise LaunchFailed(f"could not invoke {self._function_name}: {error}") from error


def lambda_client() -> Invoker:
    """A Lambda client with short timeouts: an asynchronous invocation is accepted in milliseconds or not at all."""
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    client: Invoker = boto3.client("lambda", config=config)
    return client
