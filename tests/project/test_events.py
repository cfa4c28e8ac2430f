"""Every event in events/ is answered by the example as the file beside it says, those in polling/ with polling on."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from handler.app import lambda_handler
from mcp_stateless.testing import Subprocess, lambda_context

EVENTS: Final = Path(__file__).parents[2] / "events"


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.json") if not path.stem.endswith(".expected"))


NAMES: Final = names(EVENTS)


def read(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def readable(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply as the expected files hold it: a JSON body as JSON."""
    try:
        return reply | {"body": json.loads(reply["body"])}
    except (KeyError, ValueError):
        return reply


@pytest.mark.parametrize("name", NAMES)
def test_an_event_is_answered_as_the_file_beside_it_says(name: str) -> None:
    assert readable(lambda_handler(read(name), lambda_context())) == read(f"{name}.expected")


@pytest.fixture(scope="module")
def polling() -> Iterator[Subprocess]:
    """The example as it is deployed with polling, but that calls lie in memory."""
    env = {"MCP_POLLING": "memory", "MCP_SIGNING_KEYS": "a key for the events in events/polling/"}
    with Subprocess("handler.app:lambda_handler", env=env, cwd=EVENTS.parent) as environment:
        yield environment


@pytest.mark.parametrize("name", names(EVENTS / "polling"))
def test_with_polling_an_event_is_answered_as_the_file_beside_it_says(name: str, polling: Subprocess) -> None:
    reply = readable(polling.invoke(read(f"polling/{name}")))

    if isinstance(body := reply.get("body"), str):
        # Signed, and unguessable.
        reply["body"] = re.sub(r"^id: \S{60,}$", "id: <event id>", body, flags=re.MULTILINE)
        reply["headers"].pop("content-length")
    assert reply == read(f"polling/{name}.expected")


def test_there_is_an_event_for_each_thing_to_try_and_each_source() -> None:
    assert {
        *("initialize", "initialized-notification", "ping", "tools-list", "tools-call", "tools-call-error"),
        *("tools-call-progress", "resource-read", "prompt-get", "completion"),
        "tools-call-long",
        *("get-not-allowed", "options-preflight", "foreign-origin", "not-json", "health"),
        *(
            f"{source}-{what}"
            for source in ("rest-api", "function-url", "alb")
            for what in ("initialize", "tools-call")
        ),
    } <= set(NAMES)
    assert names(EVENTS / "polling") == ["get-forged-id", "tools-call", "work-lost", "work-unknown-call"]


def test_the_sources_give_the_same_answer_to_the_same_message() -> None:
    bodies = [read(f"{source}tools-call.expected")["body"] for source in ("", "rest-api-", "function-url-", "alb-")]

    assert all(body == bodies[0] for body in bodies)
