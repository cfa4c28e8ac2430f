"""The environments start once; each test gets an empty record of what they answer."""

from collections.abc import Iterator

import pytest

from mcp_stateless.testing import Fleet
from tests.clients.environments import Log, fleet_of_processes


@pytest.fixture(scope="session")
def log() -> Log:
    return Log()


@pytest.fixture(scope="session")
def processes(log: Log) -> Iterator[Fleet]:
    with fleet_of_processes(log) as fleet:
        fleet.warm_up()
        yield fleet


@pytest.fixture
def fleet(processes: Fleet, log: Log) -> Fleet:
    log.clear()
    return processes
