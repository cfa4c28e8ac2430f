import pytest

from mcp_stateless.calls.record import (
    LATE_MS,
    Answer,
    Claim,
    Finish,
    Move,
    MoveRefused,
    Park,
    Relaunch,
    Report,
    State,
    apply,
)
from tests.calls.samples import ASKING, DUE, MOVES, NOW, OUTCOME, PENDING, RECORDS, RUNNING


def is_allowed(name: str, move: Move, now_ms: int = NOW) -> bool:
    try:
        apply(RECORDS[name], move, now_ms)
    except MoveRefused:
        return False
    return True


ALLOWED = {
    "pending": {"Claim", "Cancel", "Relaunch", "Fail"},
    "running": {"Report", "RecordStep", "Park", "Finish", "Cancel", "Fail"},
    "running, with an attempt left": {"Report", "RecordStep", "Park", "Finish", "Cancel", "Relaunch", "Fail"},
    "running, overdue": {"Claim", "Report", "RecordStep", "Park", "Finish", "Cancel", "Relaunch"},
    "running, due now": {"Report", "RecordStep", "Park", "Finish", "Cancel"},
    "running, overdue, its last attempt": {"Report", "RecordStep", "Park", "Finish", "Cancel"},
    "asking": {"Answer", "Cancel", "Fail"},
    "asking, all answered": {"Claim", "Cancel", "Relaunch", "Fail"},
    "completed": set(),
    "failed": set(),
    "cancelled": set(),
    "expired": set(),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_state_allows_these_kinds_of_moves_and_no_others(name: str) -> None:
    assert {type(move).__name__ for move in MOVES if is_allowed(name, move)} == ALLOWED[name]


def test_a_claim_counts_the_attempt_and_gives_it_the_time_of_the_tool() -> None:
    claimed = apply(PENDING, Claim(), NOW)

    assert (claimed.state, claimed.attempt) == (State.RUNNING, 1)
    assert claimed.due_ms == NOW + PENDING.request.timeout_s * 1000 + LATE_MS


def test_the_worker_of_an_attempt_that_was_given_up_cannot_write_any_more() -> None:
    overdue = RECORDS["running, overdue"]
    second = apply(apply(overdue, Relaunch(1, overdue.due_ms, DUE), NOW), Claim(), NOW)

    for late in (Report(1, None), Finish(1, State.COMPLETED, OUTCOME)):
        with pytest.raises(MoveRefused) as refused:
            apply(second, late, NOW)
        assert refused.value.record == second
    assert apply(second, Finish(2, State.COMPLETED, OUTCOME), NOW).state is State.COMPLETED


def test_whoever_answers_the_last_question_sees_that_none_is_open() -> None:
    first, second = ASKING.questions

    one_left = apply(ASKING, Answer(first, {"result": 1}, DUE), NOW)
    none_left = apply(one_left, Answer(second, {"result": 2}, DUE), NOW)

    assert (one_left.open, none_left.open) == (1, 0)
    with pytest.raises(MoveRefused):
        apply(none_left, Answer(second, {"result": 3}, DUE), NOW)


def test_going_on_after_questions_uses_no_retry_up() -> None:
    parked = apply(RUNNING, Park(1, {"name": {}}), NOW)
    again = apply(apply(parked, Answer("name", {"result": "Ada"}, DUE), NOW), Claim(), NOW)

    assert (RUNNING.attempt, RUNNING.max_attempts) == (1, 1)
    assert (again.attempt, again.max_attempts) == (2, 2)


def test_two_that_look_after_a_lost_call_relaunch_it_once() -> None:
    overdue = RECORDS["running, overdue"]
    again = Relaunch(1, overdue.due_ms, DUE)

    relaunched = apply(overdue, again, NOW)

    with pytest.raises(MoveRefused):
        apply(relaunched, again, NOW)


def test_an_expired_record_is_as_none() -> None:
    assert is_allowed("about to expire", Claim(), NOW)
    with pytest.raises(MoveRefused) as refused:
        apply(RECORDS["about to expire"], Claim(), NOW + 1)
    assert refused.value.record is None


def test_a_move_leaves_the_record_it_was_given_as_it_was() -> None:
    before = repr(ASKING)

    apply(ASKING, Answer("", {"result": "yes"}, DUE), NOW)

    assert repr(ASKING) == before
