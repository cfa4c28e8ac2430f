"""Environments in and out of the process, fleets of them, and the handler's context."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mcp_stateless.testing
from mcp_stateless.testing import Environment, Fleet, InProcess, InvocationError, Subprocess, lambda_context
from mcp_stateless.testing.environments import as_environment

HERE = str(Path(__file__).parent)


@pytest.fixture
def process() -> Iterator[Subprocess]:
    with Subprocess("sample:handler", cwd=HERE, env=with_package(SAMPLE="set")) as environment:
        yield environment


def with_package(**variables: str) -> dict[str, str]:
    """Variables of a process that finds the package wherever this one found it."""
    return {"PYTHONPATH": str(Path(mcp_stateless.testing.__file__).parents[2]), **variables}


def words(result: Any) -> list[str]:
    found: list[str] = result["body"].split(" ")
    return found


def test_a_process_answers_again_and_again_and_keeps_its_state(process: Subprocess) -> None:
    first, second = words(process.invoke({})), words(process.invoke({}))
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("1", "2")
    assert first[2:] == ["True", "set"]


def test_an_exception_is_an_invocation_error_and_the_process_lives_on(process: Subprocess) -> None:
    pid = words(process.invoke({}))[0]
    with pytest.raises(InvocationError, match="ValueError: no such action"):
        process.invoke({"action": "raise"})
    assert words(process.invoke({}))[0] == pid


@pytest.mark.parametrize("action", ["exit", "hang"])
def test_a_process_that_died_or_ran_out_of_time_is_started_anew(process: Subprocess, action: str) -> None:
    pid = words(process.invoke({}))[0]
    with pytest.raises(InvocationError, match=r"exited|timed out after 0\.20 seconds"):
        process.invoke({"action": action}, 200 if action == "hang" else 30_000)
    again = words(process.invoke({}))
    assert again[0] != pid
    assert again[1] == "1"


def test_a_process_killed_while_idle_is_started_anew(process: Subprocess) -> None:
    pid = words(process.invoke({}))[0]
    process.kill()
    assert words(process.invoke({}))[0] != pid


def test_the_handler_cannot_take_requests_from_the_pipe(process: Subprocess) -> None:
    assert process.invoke({"action": "read stdin"}) == {"read": ""}


def test_a_handler_that_cannot_be_imported_is_an_invocation_error() -> None:
    with (
        Subprocess("sample:missing", cwd=HERE, env=with_package()) as environment,
        pytest.raises(InvocationError, match="exited"),
    ):
        environment.invoke({})


def test_an_in_process_handler_sees_a_copy_of_the_event_and_may_return_only_json() -> None:
    event: dict[str, Any] = {"list": [1]}

    def handler(got: dict[str, Any], context: object) -> object:
        got["list"].append(2)
        return got if got.get("good") else object()

    assert InProcess(handler).invoke(event | {"good": True}) == {"list": [1, 2], "good": True}
    assert event == {"list": [1]}
    with pytest.raises(InvocationError, match="not JSON serializable"):
        InProcess(handler).invoke(event)


def recorders(names: list[str]) -> list[InProcess]:
    """Three environments that write down their names when they are asked."""

    def named(name: str) -> InProcess:
        return InProcess(lambda event, context: names.append(name))

    return [named(name) for name in "abc"]


def test_a_fleet_takes_turns() -> None:
    names: list[str] = []
    fleet = Fleet(recorders(names))
    for _ in range(5):
        fleet.invoke({})
    assert names == ["a", "b", "c", "a", "b"]


def test_a_fleet_that_picks_the_first_free_one_reuses_it() -> None:
    names: list[str] = []
    fleet = Fleet(recorders(names), pick="first_free")
    for _ in range(3):
        fleet.invoke({})
    assert names == ["a", "a", "a"]


@pytest.mark.parametrize("pick", ["round_robin", "first_free"])
def test_an_environment_of_a_fleet_gets_one_request_at_a_time(pick: Any) -> None:
    all_busy = threading.Barrier(3, timeout=10)

    class OneAtATime:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def invoke(self, event: object, context_ms: int = 30_000) -> str:
            assert self.lock.acquire(blocking=False)
            try:
                all_busy.wait()
            finally:
                self.lock.release()
            return "done"

    environments: list[Environment] = [OneAtATime() for _ in range(3)]
    fleet = Fleet(environments, pick=pick)
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(fleet.invoke({}))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == ["done"] * 12


def test_a_fleet_needs_an_environment() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Fleet([])


def test_a_fleet_warms_up_and_closes_its_processes() -> None:
    processes = [Subprocess("sample:handler", cwd=HERE, env=with_package()) for _ in range(2)]
    with Fleet(processes) as fleet:
        fleet.warm_up()
        assert words(fleet.invoke({}))[1] == "2"


def test_what_is_no_server_handler_or_environment_is_refused() -> None:
    with pytest.raises(TypeError, match="no server, handler or environment"):
        as_environment(5)


def test_the_context_counts_down_with_the_clock_it_is_given() -> None:
    now = [10.0]
    context = lambda_context(3_000, clock=lambda: now[0])
    assert context.get_remaining_time_in_millis() == 3_000
    now[0] = 12.5
    assert context.get_remaining_time_in_millis() == 500
    now[0] = 20.0
    assert context.get_remaining_time_in_millis() == 0
    assert context.aws_request_id != lambda_context().aws_request_id
