"""Every event in events/ is answered as the file beside it says."""

import json
from pathlib import Path

import pytest
from mcp_stateless.testing import lambda_context

from handler.app import lambda_handler

EVENTS = Path(__file__).parents[1] / "events"


@pytest.mark.parametrize(
    "event", sorted(set(EVENTS.glob("*.json")) - set(EVENTS.glob("*.expected.json"))), ids=lambda path: path.stem
)
def test_an_event_is_answered_as_expected(event: Path) -> None:
    expected = json.loads(event.with_suffix(".expected.json").read_text())

    reply = lambda_handler(json.loads(event.read_text()), lambda_context())

    assert reply["statusCode"] == expected["statusCode"]
    assert json.loads(reply["body"]) == expected["body"]
