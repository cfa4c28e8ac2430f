"""What must hold of every call, whatever went wrong around it."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.soak.caller import Outcome

CLEAR: Final = (
    "The call was lost: its worker ended without a result. Call the tool again.",
    "The call could not be started. Try again in a moment.",
)
"""Errors that tell the caller what to do."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked of the calls of a scenario."""

    within_s: float
    errors_allowed: bool = False
    """A call may end in an error, if that is a clear one."""


def problems(outcomes: Sequence[Outcome], terms: Terms) -> list[str]:
    """Everything that is wrong, one sentence each."""
    found = [f"{each.token}: {problem}" for each in outcomes for problem in _of(each, terms)]
    ids = Counter(event_id for each in outcomes for event_id in each.event_ids)
    return found + [f"the event id {event_id} came {times} times" for event_id, times in ids.items() if times > 1]


def summary(outcomes: Sequence[Outcome]) -> str:
    ended = Counter("result" if each.result is not None else each.error or each.gave_up for each in outcomes)
    longest = max(each.seconds for each in outcomes)
    polls = sum(each.polls for each in outcomes)
    told = "; ".join(f"{count} x {what}" for what, count in ended.most_common())
    return f"{len(outcomes)} calls, {polls} polls, the longest {longest:.1f} s: {told}"


def _of(call: Outcome, terms: Terms) -> Iterator[str]:
    if call.gave_up:
        yield f"the client gave up: {call.gave_up}"
        return
    if [response["id"] for response in call.responses] != [call.rpc_id]:
        yield f"answers to {[response['id'] for response in call.responses]} came instead of one to {call.rpc_id}"
    if call.seconds > terms.within_s:
        yield f"took {call.seconds:.1f} s"
    if call.result is None and not (terms.errors_allowed and call.error in CLEAR):
        yield f"ended in {call.error!r}"
    if call.result not in (None, call.token):
        yield f"got the result of {call.result}"
    if call.after_the_end != 405:
        yield f"a poll after the end was answered {call.after_the_end}"
    yield from _of_the_messages(call, terms)


def _of_the_messages(call: Outcome, terms: Terms) -> Iterator[str]:
    logs = [each["params"]["data"] for each in call.messages if each.get("method") == "notifications/message"]
    expected = [f"{call.token} {step}" for step in range(1, call.steps + 1)]
    if logs != expected[: len(logs)]:
        yield f"the messages were {logs}"
    if call.result is not None and len(logs) != call.steps:
        yield f"{len(logs)} of {call.steps} messages came"
    progress = [each["params"] for each in call.messages if each.get("method") == "notifications/progress"]
    if any(each["progressToken"] != call.token for each in progress):
        yield "the progress of another call came"
    values = [each["progress"] for each in progress]
    if any(later <= earlier for earlier, later in itertools.pairwise(values)):
        yield f"the progress did not rise: {values}"
