"""Forty long calls, then some more while workers die, events come twice, servers freeze and the store throttles."""

from collections.abc import Iterator

import pytest

from tests.emulator import tools
from tests.soak.deployment import Deployment, Faults, deployed
from tests.soak.verdict import Terms, problems

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not tools.SUPPORTED, reason="the runtime interface emulator is a Linux program"),
]

CALLERS = 12
PATIENCE_S = 60


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("build"), servers=4, workers=4) as deployment:
        yield deployment


def test_forty_calls_are_answered_once_each_in_order_though_events_come_twice_and_servers_freeze(
    deployment: Deployment,
) -> None:
    faults = Faults(duplicated_events=0.3, frozen_requests=0.03)
    outcomes = deployment.run("short", 40, CALLERS, faults, patience_s=PATIENCE_S)

    assert len(outcomes) == 40
    assert problems(outcomes, Terms(PATIENCE_S)) == []


def test_calls_of_workers_that_are_killed_end_in_a_clear_error_and_the_others_in_their_result(
    deployment: Deployment,
) -> None:
    outcomes = deployment.run("killed", 16, CALLERS, Faults(killed_workers=0.5), patience_s=PATIENCE_S)

    assert problems(outcomes, Terms(PATIENCE_S, errors_allowed=True)) == []
    assert 0 < sum(each.error is not None for each in outcomes) < 16


def test_a_store_that_throttles_one_request_in_five_costs_time_and_no_call(deployment: Deployment) -> None:
    before = deployment.proxy.throttled
    outcomes = deployment.run("throttled", 12, CALLERS, Faults(throttled_requests=0.2), patience_s=PATIENCE_S)

    assert problems(outcomes, Terms(PATIENCE_S, errors_allowed=True)) == []
    assert deployment.proxy.throttled > before
