"""The soak's own judge: what it lets pass, and that it sees each thing that may go wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.soak.caller import Outcome
from tests.soak.verdict import CLEAR, Terms, problems


def log(text: str) -> dict[str, Any]:
    return {"method": "notifications/message", "params": {"data": text}}


def progress(value: float, token: str = "token-7") -> dict[str, Any]:
    return {"method": "notifications/progress", "params": {"progressToken": token, "progress": value}}


def response(text: str, *, is_error: bool = False, rpc_id: int = 7) -> dict[str, Any]:
    return {"id": rpc_id, "result": {"content": [{"type": "text", "text": text}], "isError": is_error}}


def good() -> Outcome:
    messages = [log("token-7 1"), progress(1), log("token-7 2"), progress(2), response("token-7")]
    return Outcome(7, "token-7", steps=2, seconds=1.0, event_ids=["a", "b"], messages=messages)


def test_a_call_that_went_well_has_no_problem() -> None:
    assert problems([good()], Terms(within_s=2)) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda call: call.messages.pop(), "instead of one to 7"),
        (lambda call: call.messages.append(response("token-7")), "instead of one to 7"),
        (lambda call: call.messages.append(response("token-7", rpc_id=8)), "instead of one to 7"),
        (lambda call: call.messages.__setitem__(-1, response("token-8")), "got the result of token-8"),
        (lambda call: call.messages.__setitem__(-1, response(CLEAR[0], is_error=True)), "ended in"),
        (lambda call: call.messages.pop(0), "the messages were ['token-7 2']"),
        (lambda call: call.messages.pop(2), "1 of 2 messages came"),
        (lambda call: call.messages.insert(1, log("token-7 1")), "the messages were"),
        (lambda call: call.messages.insert(1, log("token-8 1")), "the messages were"),
        (lambda call: call.messages.insert(4, progress(2)), "did not rise"),
        (lambda call: call.messages.insert(4, progress(3, "token-8")), "the progress of another call"),
        (lambda call: call.event_ids.append("a"), "the event id a came 2 times"),
        (lambda call: setattr(call, "seconds", 3), "took 3.0 s"),
        (lambda call: setattr(call, "after_the_end", 200), "was answered 200"),
        (lambda call: setattr(call, "gave_up", "status 502"), "gave up: status 502"),
    ],
)
def test_whatever_goes_wrong_is_seen(spoil: Callable[[Outcome], object], said: str) -> None:
    call = good()
    spoil(call)

    assert said in " ".join(problems([call], Terms(within_s=2)))


def test_only_clear_errors_pass_where_errors_may_be() -> None:
    clear, unclear = good(), good()
    clear.messages[-1] = response(CLEAR[0], is_error=True)
    unclear.messages[-1] = response("Something went wrong", is_error=True)

    assert problems([clear], Terms(within_s=2, errors_allowed=True)) == []
    assert "Something went wrong" in problems([unclear], Terms(within_s=2, errors_allowed=True))[0]
