"""The moves as conditional updates of the head, each equal in meaning to `record.apply`; and those of places. Pure.

`#name` stands for an attribute and `:name` for a value in every expression, whether or not DynamoDB reserves the word;
what an expression uses is found in its text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_stateless.calls.items import Attribute, Item, json_string, map_key, number, progress, string
from mcp_stateless.calls.record import (
    SCHEMA,
    Answer,
    Cancel,
    Claim,
    Fail,
    Finish,
    Move,
    Park,
    RecordStep,
    Relaunch,
    Report,
    State,
)
from mcp_stateless.calls.store import RecordTooLarge

MAX_QUESTIONS: Final = 100
"""At once; an update expression may have 4 KB and 300 operators."""

ALIVE: Final = "#schema = :schema AND #until > :now"
"""Also false for a record that is not there, so that no move brings one back."""
MINE: Final = "#state = :running AND #attempt = :attempt"
AS_SEEN: Final = "#attempt = :attempt AND #due = :seen"
NOT_FINAL: Final = "#state IN (:pending, :running, :asking)"
ATTEMPT_LEFT: Final = "#attempt < #max"
CLAIMABLE: Final = (
    "(#state = :pending OR (#state = :asking AND #open = :zero)"
    f" OR (#state = :running AND #due < :now AND {ATTEMPT_LEFT}))"
)
RELAUNCHABLE: Final = (
    f"(#state = :pending OR (#state = :asking AND #open = :zero) OR (#state = :running AND {ATTEMPT_LEFT}))"
)
UNANSWERED: Final = "#state = :asking AND attribute_exists(#questions.#key) AND attribute_not_exists(#answers.#key)"

CONSTANTS: Final[Mapping[str, Attribute]] = {
    **{state.value: string(state) for state in State},
    "schema": number(SCHEMA),
    "zero": number(0),
    "one": number(1),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One move: when it is allowed, what it sets. Its values, and the names that are not those of attributes."""

    condition: str
    sets: str
    values: Mapping[str, Attribute] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    ends: bool = False


def update(move: Move, now_ms: int, move_id: str, outcome: Attribute | None) -> dict[str, Any]:
    """The parameters of an UpdateItem that carries out a move; `outcome` is where one that ends the call has it.

    Raises:
        RecordTooLarge: more questions at once than an expression can take.
    """
    change = _CHANGES[type(move)](move, outcome)
    condition = f"{ALIVE} AND {change.condition}"
    sets = ", ".join(filter(None, ["SET #move = :move, #updated = :now", change.sets])) + (
        " REMOVE #spare" if change.ends else ""
    )
    text = f"{condition} {sets}"
    values = {**CONSTANTS, **change.values, "now": number(now_ms), "move": string(move_id)}
    return {
        "ConditionExpression": condition,
        "UpdateExpression": sets,
        "ExpressionAttributeNames": {f"#{name}": change.names.get(name, name) for name in re.findall(r"#(\w+)", text)},
        "ExpressionAttributeValues": {f":{name}": values[name] for name in re.findall(r":(\w+)", text)},
    }


def take_place(call_id: str, until_ms: int, most: int, ttl: Attribute) -> dict[str, Any]:
    """Take a place, without looking which of the others are past their time. Not where the item is still to be made."""
    return {
        "ConditionExpression": "size(#open) < :most OR attribute_exists(#open.#call)",
        "UpdateExpression": "SET #open.#call = :until, #ttl = :ttl",
        "ExpressionAttributeNames": {"#open": "open", "#call": call_id, "#ttl": "ttl"},
        "ExpressionAttributeValues": {":most": number(most), ":until": number(until_ms), ":ttl": ttl},
    }


def replace_places(seen: Item, places: Mapping[str, int], ttl: Attribute) -> dict[str, Any]:
    """Put other places where those still stand that were seen; `seen` is empty where there was no item."""
    values = {":places": {"M": {call_id: number(until_ms) for call_id, until_ms in places.items()}}, ":ttl": ttl}
    return {
        "ConditionExpression": "#open = :seen" if seen else "attribute_not_exists(#open)",
        "UpdateExpression": "SET #open = :places, #ttl = :ttl",
        "ExpressionAttributeNames": {"#open": "open", "#ttl": "ttl"},
        "ExpressionAttributeValues": values | ({":seen": seen["open"]} if seen else {}),
    }


def leave_place(call_id: str) -> dict[str, Any]:
    return {
        "ConditionExpression": "attribute_exists(#open.#call)",
        "UpdateExpression": "REMOVE #open.#call",
        "ExpressionAttributeNames": {"#open": "open", "#call": call_id},
    }


def _claim(_move: Claim, _: Attribute | None) -> Change:
    return Change(CLAIMABLE, "#state = :running, #attempt = #attempt + :one, #due = #lease + :now")


def _report(move: Report, _: Attribute | None) -> Change:
    values = {"attempt": number(move.attempt)}
    if move.progress is None:
        return Change(MINE, "", values)
    return Change(MINE, "#progress = :progress", values | {"progress": progress(move.progress)})


def _record_step(move: RecordStep, _: Attribute | None) -> Change:
    values = {"attempt": number(move.attempt), "value": json_string(move.value)}
    return Change(MINE, "#steps.#key = :value", values, {"key": map_key(move.key)})


def _park(move: Park, _: Attribute | None) -> Change:
    if len(move.questions) > MAX_QUESTIONS:
        raise RecordTooLarge(f"{len(move.questions)} questions at once; a call can ask {MAX_QUESTIONS}")
    numbered = {f"q{index}": item for index, item in enumerate(move.questions.items())}
    sets = ["#state = :asking", "#open = :open", "#max = #max + :one"]
    sets += [f"#questions.#{name} = :{name}" for name in numbered]
    values = {"attempt": number(move.attempt), "open": number(len(numbered))}
    values |= {name: json_string(question) for name, (_, question) in numbered.items()}
    return Change(MINE, ", ".join(sets), values, {name: map_key(author) for name, (author, _) in numbered.items()})


def _answer(move: Answer, _: Attribute | None) -> Change:
    sets = "#answers.#key = :value, #open = #open - :one, #due = :due"
    values = {"value": json_string(move.value), "due": number(move.due_ms)}
    return Change(UNANSWERED, sets, values, {"key": map_key(move.key)})


def _relaunch(move: Relaunch, _: Attribute | None) -> Change:
    values = {"attempt": number(move.attempt), "seen": number(move.seen_due_ms), "due": number(move.due_ms)}
    return Change(f"{AS_SEEN} AND {RELAUNCHABLE}", "#state = :pending, #due = :due", values)


def _finish(move: Finish, outcome: Attribute | None) -> Change:
    return _end(MINE, move.state, outcome, {"attempt": number(move.attempt)})


def _cancel(move: Cancel, outcome: Attribute | None) -> Change:
    return _end(NOT_FINAL, State.CANCELLED, outcome, {})


def _fail(move: Fail, outcome: Attribute | None) -> Change:
    seen = {"attempt": number(move.attempt), "seen": number(move.seen_due_ms)}
    return _end(f"{AS_SEEN} AND {NOT_FINAL}", State.FAILED, outcome, seen)


def _end(condition: str, state: State, outcome: Attribute | None, values: dict[str, Attribute]) -> Change:
    assert outcome is not None, "a move that ends the call has an outcome"
    sets = f"#state = :{state}, #outcome = :outcome"
    return Change(condition, sets, values | {"outcome": outcome}, ends=True)


_CHANGES: Final[Mapping[type, Callable[[Any, Attribute | None], Change]]] = {
    Claim: _claim,
    Report: _report,
    RecordStep: _record_step,
    Park: _park,
    Answer: _answer,
    Finish: _finish,
    Cancel: _cancel,
    Relaunch: _relaunch,
    Fail: _fail,
}
