"""The stores of `tests/calls`, and a deployment on each of them."""

from collections.abc import Callable

import pytest

from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from tests.calls.conftest import dynamodb, engine, store, table
from tests.polling.world import World

__all__ = ["dynamodb", "engine", "store", "table"]


@pytest.fixture
def deploy(store: CallStore) -> Callable[..., World]:
    """Makes a deployment with settings of the test's own; on each store."""
    return lambda **settings: World(store, **settings)


@pytest.fixture
def world(store: CallStore) -> World:
    """A deployment at the defaults; on each store."""
    return World(store)


@pytest.fixture
def local() -> World:
    """A deployment in memory, for what does not depend on the store."""
    return World(MemoryCallStore())
