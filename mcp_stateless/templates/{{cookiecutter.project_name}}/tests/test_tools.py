"""The tools, called as a client calls them: through the Lambda handler, with real events."""

#% if cookiecutter.polling == "yes" %#
import json
import os
from typing import Any

#% endif %#
from mcp_stateless.testing import Client
#% if cookiecutter.polling == "yes" %#
from mcp_stateless.testing.gateway import Gateway, HttpResponse
#% endif %#

from handler.app import lambda_handler
#% if cookiecutter.polling == "yes" %#

TEXTS = ["to be or not to be", "something else", "To be or not to be"]
#% endif %#


def test_the_server_offers_its_tools_with_descriptions() -> None:
    tools = Client(lambda_handler).list_tools()

    assert {"count_words", "compare_texts"} <= {tool["name"] for tool in tools}
    assert all(tool["description"] for tool in tools)


def test_words_are_counted_as_a_reader_would() -> None:
    result = Client(lambda_handler).call_tool("count_words", {"text": "Don't panic:\nit is a well-known text."})

    assert result.structured_content == {"characters": 37, "words": 7, "lines": 2, "longest_word": "well-known"}


def test_a_text_without_words_is_an_error_the_model_can_read() -> None:
    result = Client(lambda_handler).call_tool("count_words", {"text": "..."})

    assert result.is_error
    assert result.text == "There is no word in the text"


def test_a_difference_is_shown_line_by_line() -> None:
    result = Client(lambda_handler).call_tool("compare_texts", {"before": "one\ntwo", "after": "one\nthree"})

    assert result.text.splitlines()[-2:] == ["-two", "+three"]
#% if cookiecutter.polling == "yes" %#


def test_texts_that_say_nearly_the_same_are_found() -> None:
    # A client of this revision cannot come back for a result: the tool runs in the request.
    result = Client(lambda_handler, protocol_version="2025-06-18").call_tool("find_duplicates", {"texts": TEXTS})

    assert result.structured_content == {"result": [{"first": 0, "second": 2, "similarity": 0.9444}]}


def test_a_long_call_is_answered_at_once_and_its_result_is_polled() -> None:
    assert os.environ["MCP_POLLING"] == "memory"
    gateway = Gateway(lambda_handler)
    params = {"name": "find_duplicates", "arguments": {"texts": TEXTS}, "_meta": {"progressToken": "p"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    events = read_events(gateway.send("POST", "/mcp", HEADERS, json.dumps(call).encode()))
    assert events[-1][1] is None
    for _ in range(200):
        event_id = next(event_id for event_id, _ in reversed(events) if event_id)
        events = read_events(gateway.send("GET", "/mcp", {**HEADERS, "last-event-id": event_id}))
        if events[-1][1] and "result" in events[-1][1]:
            break

    assert events[-1][1] is not None
    assert events[-1][1]["result"]["structuredContent"]["result"][0]["similarity"] == 0.9444


HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}


def read_events(response: HttpResponse) -> list[tuple[str, Any]]:
    """The id and the message of each event; a message of None says that the call goes on."""
    events = []
    for event in response.body.decode().split("\n\n")[:-1]:
        fields = dict(line.partition(": ")[::2] for line in event.splitlines())
        events.append((fields.get("id", ""), json.loads(fields["data"]) if fields.get("data") else None))
    return events
#% endif %#
