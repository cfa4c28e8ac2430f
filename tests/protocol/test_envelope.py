"""JSON-RPC messages, from bytes and to bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_stateless.errors import InternalError, InvalidParams, InvalidRequest, MissingClientCapability, ParseError
from mcp_stateless.protocol import envelope
from mcp_stateless.protocol.envelope import Notification, Request, Response

IDS = st.one_of(st.integers(-(2**70), 2**70), st.text())
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (b"\xef\xbb\xbf[1]", [1]),
        (b' \n"\\u65e5" ', "日"),
        (b"9007199254740993", 9007199254740993),
        (b"[" * 150 + b"]" * 150, None),
    ],
)
def test_one_json_text_is_read(body: bytes, value: object) -> None:
    decoded = envelope.decode(body)
    assert value is None or decoded == value


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{bad",
        b"\xff\xfe",
        b"NaN",
        b"[Infinity]",
        b'{"a":1}{"b":2}',
        b"[" * 250 + b"]" * 250,
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
    ],
)
def test_anything_else_is_a_parse_error_with_one_fixed_text(body: bytes) -> None:
    with pytest.raises(ParseError, match=r"^Parse error: the body is not valid JSON$"):
        envelope.decode(body)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"jsonrpc": "2.0", "id": 0, "method": "m"}, Request(0, "m", {})),
        ({"jsonrpc": "2.0", "id": "", "method": "m", "params": {"a": 1}}, Request("", "m", {"a": 1})),
        ({"jsonrpc": "2.0", "method": "m"}, Notification("m", {})),
        ({"jsonrpc": "2.0", "method": "m", "params": [1]}, Notification("m", {})),
        ({"jsonrpc": "2.0", "id": 1, "result": None}, Response(1, {"result": None})),
        ({"jsonrpc": "2.0", "id": None, "error": {}}, Response(None, {"error": {}})),
        ({"jsonrpc": "2.0", "id": 1, "method": "m", "result": {}}, Request(1, "m", {})),
    ],
)
def test_the_keys_that_are_there_decide_what_a_message_is(value: object, message: object) -> None:
    assert envelope.read(value) == message


@pytest.mark.parametrize("request_id", [None, 1.0, True, False, [], {}])
def test_an_id_is_a_text_or_an_integer(request_id: object) -> None:
    with pytest.raises(InvalidRequest):
        envelope.read({"jsonrpc": "2.0", "id": request_id, "method": "m"})
    assert envelope.readable_id({"id": request_id}) is None


@pytest.mark.parametrize("params", [None, [], "x", 1])
def test_the_params_of_a_request_are_an_object(params: object) -> None:
    with pytest.raises(InvalidParams):
        envelope.read({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params})


@given(JSON_VALUES)
def test_every_json_value_is_a_message_or_refused(value: Any) -> None:
    try:
        outcome: object = envelope.read(value)
    except (InvalidRequest, InvalidParams) as refused:
        outcome = refused
    assert isinstance(outcome, Request | Notification | Response | InvalidRequest | InvalidParams)
    assert "\n" not in getattr(outcome, "message", "")


@given(IDS)
def test_an_id_is_echoed_as_it_came(request_id: int | str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "m"}).encode()
    message = envelope.read(envelope.decode(body))
    assert isinstance(message, Request)
    echoed = json.loads(envelope.encode(envelope.result_message(message.id, {})))["id"]
    assert (echoed, type(echoed)) == (request_id, type(request_id))


@given(JSON_VALUES)
def test_a_message_is_one_line_and_reads_back(value: Any) -> None:
    body = envelope.encode({"value": value})
    assert not {b"\n"[0], b"\r"[0]} & set(body)
    assert json.loads(body) == {"value": value}


def test_characters_are_written_as_they_are_and_lone_surrogates_escaped() -> None:
    assert envelope.encode({"a": "日🎉"}) == '{"a":"日🎉"}'.encode()
    assert envelope.encode({"a": "日\ud800"}) == b'{"a":"\\u65e5\\ud800"}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_say_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        envelope.encode({"a": value})


def test_an_error_has_an_id_and_data_only_where_there_are_some() -> None:
    assert envelope.error_message(None, InternalError("x")) == {
        "jsonrpc": "2.0",
        "error": {"code": -32603, "message": "x"},
    }
    with_both = envelope.error_message(0, MissingClientCapability({"roots": {}}), -1)
    assert (with_both["id"], with_both["error"]) == (
        0,
        {
            "code": -1,
            "message": "This call needs a client capability that the request does not declare",
            "data": {"requiredCapabilities": {"roots": {}}},
        },
    )
