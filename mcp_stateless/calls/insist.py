"""Write again what must not be lost: an answer that no client repeats, a result that took minutes, last messages."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from mcp_stateless.calls.store import StoreUnavailable

WAITS_S: Final = (0.1, 0.3, 1.0, 2.0, 4.0)
"""Before each further attempt; the store's client has tried a few times itself by then."""

R = TypeVar("R")

log = logging.getLogger(__name__)


async def insist(what: str, write: Callable[[], Awaitable[R]]) -> R:
    """The outcome of a write that is made until it goes through.

    Raises:
        StoreUnavailable: it did not, however often it was tried.
    """
    for wait_s in WAITS_S:
        try:
            return await write()
        except StoreUnavailable as error:
            log.warning("%s was not written: %s", what, error)
            await asyncio.sleep(wait_s)
    return await write()
