"""Media types of requests, and server-sent events as bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_stateless.protocol import envelope, sse
from mcp_stateless.protocol.media import accepts, is_json


@pytest.mark.parametrize(
    ("header", "json_taken", "sse_taken"),
    [
        (None, True, False),
        ("", True, False),
        ("*/*", True, False),
        ("application/*", True, False),
        ("application/json", True, False),
        ("text/event-stream", True, True),
        ("application/json, text/event-stream", True, True),
        ("text/event-stream,application/json", True, True),
        ("TEXT/Event-Stream;charset=utf-8, APPLICATION/JSON;q=0.8", True, True),
        ("application/json;q=0", False, False),
        ("application/json; q=0.0, text/event-stream", False, True),
        ("*/*;q=0", False, False),
        ("*/*;q=0, text/event-stream", False, True),
        ("application/*;q=0, */*", False, False),
        ("application/*;q=0, application/json", True, False),
        ("text/event-stream;q=0, application/json", True, False),
        ("text/html", True, False),
        ("application/json;q=nonsense", True, False),
        (",,;;,", True, False),
    ],
)
def test_what_an_accept_header_takes(header: str | None, json_taken: bool, sse_taken: bool) -> None:
    assert accepts(header) == (json_taken, sse_taken)


@given(st.text())
def test_no_accept_header_is_an_error(header: str) -> None:
    assert all(isinstance(taken, bool) for taken in accepts(header))


@pytest.mark.parametrize(
    ("content_type", "wanted"),
    [
        ("application/json", True),
        ("application/json;charset=utf-8", True),
        (" Application/JSON ; a=b", True),
        ("application/json-rpc", False),
        ("text/plain; x=application/json", False),
        ("application/json,application/json", False),
        ("", False),
        (None, False),
    ],
)
def test_what_is_declared_as_json(content_type: str | None, wanted: bool) -> None:
    assert is_json(content_type) is wanted


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        (sse.event(b"{}"), b"data: {}\n\n"),
        (sse.event(b"", event_id="a.1", retry_ms=1000), b"id: a.1\nretry: 1000\ndata: \n\n"),
        (sse.event(b"x", event_id=""), b"id: \ndata: x\n\n"),
    ],
)
def test_an_event_is_its_fields_and_an_empty_line(event: bytes, wanted: bytes) -> None:
    assert event == wanted


@given(st.lists(st.dictionaries(st.text(), st.text()), max_size=4))
def test_a_finished_stream_reads_back_whatever_its_messages_hold(messages: list[Any]) -> None:
    body = sse.finished(envelope.encode(message) for message in messages)
    lines = [line for line in body.split(b"\n") if line]
    assert [json.loads(line.removeprefix(b"data: ")) for line in lines] == messages
    assert b"\r" not in body
