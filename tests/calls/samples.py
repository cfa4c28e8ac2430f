"""Call records and moves to try on them."""

import json
from dataclasses import replace
from typing import Final
from uuid import uuid4

from mcp_stateless.calls.record import (
    Answer,
    CallRecord,
    Cancel,
    Claim,
    Fail,
    Finish,
    Move,
    Park,
    Progress,
    RecordStep,
    Relaunch,
    Report,
    State,
    StoredRequest,
)
from mcp_stateless.principal import Principal

NOW: Final = 1_700_000_000_000
DUE: Final = NOW + 30_000
UNTIL: Final = NOW + 3_600_000
AWKWARD: Final = json.loads(
    '{"a":0.1,"b":1.0,"c":1,"d":1e308,"e":9007199254740993,"f":"","g":null,"h":[],"i":{"":1},'
    '"j":"\\ud83d\\ude00 \\u0000 \\ud800","k":[[],{}, -0.0],"l":false}'
)
"""JSON that DynamoDB's own types would change, or refuse."""

PRINCIPAL: Final = Principal("https://issuer.example", "Ada", "client", frozenset({"b", "a"}), {"level": 1.0})
REQUEST: Final = StoredRequest(
    tool="count",
    rpc_id="one",
    revision="2025-11-25",
    wire="polled",
    principal=PRINCIPAL,
    timeout_s=120,
    progress_token=0,
    log_level="info",
    client_capabilities={"elicitation": {}},
    headers={"user-agent": "test"},
    journal_id="journal",
    started_ms=NOW - 1,
)
PENDING: Final = CallRecord("call", REQUEST, '{"n":1.0}', created_ms=NOW, due_ms=DUE, until_ms=UNTIL)
RUNNING: Final = replace(PENDING, state=State.RUNNING, attempt=1)
ASKING: Final = replace(
    PENDING,
    state=State.ASKING,
    attempt=1,
    max_attempts=2,
    open=2,
    questions={"": {"method": "a"}, "β.#:'\"\ud800": {"method": "b"}},
)
OUTCOME: Final = '{"result":{"content":[]}}'

RECORDS: Final = {
    "pending": PENDING,
    "running": RUNNING,
    "running, with an attempt left": replace(RUNNING, max_attempts=2),
    "running, its last attempt": replace(RUNNING, attempt=2, max_attempts=2),
    "running, overdue": replace(RUNNING, due_ms=NOW - 1, max_attempts=2),
    "running, due now": replace(RUNNING, due_ms=NOW, max_attempts=2),
    "running, overdue, its last attempt": replace(RUNNING, due_ms=NOW - 1),
    "running, with steps and progress": replace(
        RUNNING, steps={"": {"value": 1.0}}, progress=Progress(1, 2.0, "half", 3)
    ),
    "asking": ASKING,
    "asking, one answered": replace(ASKING, open=1, answers={"": {"result": None}}),
    "asking, all answered": replace(ASKING, open=0, answers=dict.fromkeys(ASKING.questions, AWKWARD)),
    "completed": replace(RUNNING, state=State.COMPLETED, outcome=OUTCOME),
    "failed": replace(RUNNING, state=State.FAILED, outcome=OUTCOME),
    "cancelled": replace(PENDING, state=State.CANCELLED, outcome=OUTCOME),
    "expired": replace(PENDING, until_ms=NOW),
    "about to expire": replace(PENDING, until_ms=NOW + 1),
}
"""One for each case that a move tells apart."""

MOVES: Final[list[Move]] = [
    Claim(),
    Report(1, None),
    Report(1, Progress(0.1, None, None, 1)),
    Report(2, Progress(1, 1.0, "ä", 2)),
    RecordStep(1, "step.#1", AWKWARD),
    RecordStep(1, "", {"value": None}),
    RecordStep(2, "", {}),
    Park(1, {}),
    Park(1, {"": {"method": "c"}, "x" * 300: AWKWARD}),
    Park(2, {"": {}}),
    Answer("", AWKWARD, DUE + 1),
    Answer("β.#:'\"\ud800", {}, DUE + 1),
    Answer("unknown", {"result": "yes"}, DUE + 1),
    Finish(1, State.COMPLETED, OUTCOME),
    Finish(1, State.FAILED, '{"error":"語"}'),
    Finish(2, State.COMPLETED, OUTCOME),
    Cancel(OUTCOME),
    Relaunch(0, DUE, DUE + 1),
    Relaunch(1, DUE, DUE + 1),
    Relaunch(1, NOW - 1, DUE + 1),
    Relaunch(1, DUE + 7, DUE + 1),
    Fail(0, DUE, OUTCOME),
    Fail(1, DUE, OUTCOME),
    Fail(1, DUE + 7, OUTCOME),
]
"""Every move, with what makes it fit some records and not others."""


def named(record: CallRecord) -> CallRecord:
    """The record under an id of its own."""
    return replace(record, call_id=uuid4().hex)
