"""Every event in events/ is answered by the example as the file beside it says."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from handler.app import lambda_handler
from mcp_stateless.testing import lambda_context

EVENTS: Final = Path(__file__).parents[2] / "events"
NAMES: Final = sorted(path.stem for path in EVENTS.glob("*.json") if not path.stem.endswith(".expected"))


def read(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def readable(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply as the expected files hold it: a JSON body as JSON."""
    try:
        return reply | {"body": json.loads(reply["body"])}
    except ValueError:
        return reply


@pytest.mark.parametrize("name", NAMES)
def test_an_event_is_answered_as_the_file_beside_it_says(name: str) -> None:
    assert readable(lambda_handler(read(name), lambda_context())) == read(f"{name}.expected")


def test_there_is_an_event_for_each_thing_to_try_and_each_source() -> None:
    assert {
        *("initialize", "initialized-notification", "ping", "tools-list", "tools-call", "tools-call-error"),
        *("tools-call-progress", "resource-read", "prompt-get", "completion"),
        *("get-not-allowed", "options-preflight", "foreign-origin", "not-json", "health"),
        *(
            f"{source}-{what}"
            for source in ("rest-api", "function-url", "alb")
            for what in ("initialize", "tools-call")
        ),
    } <= set(NAMES)


def test_the_sources_give_the_same_answer_to_the_same_message() -> None:
    bodies = [read(f"{source}tools-call.expected")["body"] for source in ("", "rest-api-", "function-url-", "alb-")]

    assert all(body == bodies[0] for body in bodies)
