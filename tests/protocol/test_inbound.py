"""The order of checks on a decoded body: each can be reached, and an earlier one hides the later ones."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_stateless.errors import (
    HeaderMismatch,
    InternalError,
    InvalidParams,
    MethodNotFound,
    MissingClientCapability,
    ProtocolError,
    ResourceNotFound,
    UnsupportedVersion,
)
from mcp_stateless.protocol.envelope import Response
from mcp_stateless.protocol.inbound import (
    MAX_BATCH,
    Accepted,
    Batch,
    Call,
    Refused,
    code_of,
    decode_header,
    route,
    status_of,
)
from mcp_stateless.protocol.revisions import REVISIONS

MODERN = "2026-07-28"
SERVED = tuple(REVISIONS)
VERSION, CAPABILITIES = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
HEADERS = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "add"}
META = {VERSION: MODERN, CAPABILITIES: {}}
MISSING: Any = object()


def message(**changes: Any) -> dict[str, Any]:
    """A good modern `tools/call`, with changes to its envelope (`jsonrpc`, `id`, ...) or params (`name`, `meta`)."""
    params = {"name": changes.pop("name", "add"), "arguments": {}, "_meta": changes.pop("meta", META)}
    made = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params} | changes
    return {key: value for key, value in made.items() if value is not MISSING}


def headers(**changes: str | None) -> dict[str, str]:
    made = HEADERS | {f"mcp-{name.replace('_', '-')}": value for name, value in changes.items()}
    return {name: value for name, value in made.items() if value is not None}


def code(value: object, fields: Mapping[str, str] = HEADERS, served: tuple[str, ...] = SERVED) -> int:
    outcome = route(value, fields, served)
    assert isinstance(outcome, Refused), outcome
    assert outcome.status == 400
    return outcome.error.code


def test_a_good_request_is_a_call() -> None:
    call = route(message(), HEADERS, SERVED)
    assert isinstance(call, Call)
    assert (call.id, call.method, call.revision.name, call.client_capabilities) == (1, "tools/call", MODERN, {})


LADDER: list[tuple[int, dict[str, Any], dict[str, str | None]]] = [
    (-32600, {"jsonrpc": "1.0"}, {}),
    (-32600, {"id": None}, {}),
    (-32602, {"params": []}, {}),
    (-32602, {"meta": {VERSION: 5, CAPABILITIES: {}}}, {}),
    (-32602, {"meta": {VERSION: MODERN}}, {}),
    (-32020, {}, {"protocol_version": None}),
    (-32020, {}, {"protocol_version": "2025-11-25"}),
    (-32020, {}, {"method": None}),
    (-32020, {}, {"method": "tools/list"}),
    (-32020, {}, {"name": None}),
    (-32020, {}, {"name": "sub"}),
    (-32022, {"meta": {VERSION: "2030-01-01", CAPABILITIES: {}}}, {"protocol_version": "2030-01-01"}),
]
"""One fault each, in the order in which they are looked for."""


@pytest.mark.parametrize(("wanted", "changes", "fields"), LADDER)
def test_each_check_can_be_reached(wanted: int, changes: dict[str, Any], fields: dict[str, str | None]) -> None:
    assert code(message(**changes), headers(**fields)) == wanted


@pytest.mark.parametrize("first", range(len(LADDER)))
@pytest.mark.parametrize("second", range(len(LADDER)))
def test_of_two_faults_the_earlier_one_is_told(first: int, second: int) -> None:
    if first >= second:
        return
    (wanted, changes, fields), (_, more, other) = LADDER[first], LADDER[second]
    if {"meta", "params"} & set(changes) and {"meta", "params"} & set(more):
        return  # two faults in one place are one fault
    assert code(message(**{**more, **changes}), headers(**{**other, **fields})) == wanted


def test_the_pinned_orders_of_the_official_suite() -> None:
    unknown = {"meta": {VERSION: "v999", CAPABILITIES: {}}}
    assert code(message(meta={CAPABILITIES: {}})) == -32602
    assert code(message(**unknown)) == -32020
    assert code(message(**unknown), headers(protocol_version="v999")) == -32022


def test_a_missing_name_is_left_to_the_method() -> None:
    for name in (None, 5, ["a"]):
        assert isinstance(route(message(name=name), headers(name=None), SERVED), Call)


@pytest.mark.parametrize(
    ("code_", "legacy", "modern"),
    [
        (MethodNotFound("x"), 200, 404),
        (InvalidParams("x"), 200, 200),
        (InternalError("x"), 200, 200),
        (HeaderMismatch("x"), 200, 400),
        (MissingClientCapability({}), 200, 400),
        (UnsupportedVersion("x", ()), 200, 400),
        (ResourceNotFound("x"), 200, 200),
    ],
)
def test_statuses_of_the_methods_errors(code_: ProtocolError, legacy: int, modern: int) -> None:
    for name, revision in REVISIONS.items():
        assert status_of(code_, revision) == (modern if name == MODERN else legacy)


def test_the_code_of_a_missing_resource_depends_on_the_era() -> None:
    codes = {name: code_of(ResourceNotFound("x"), revision) for name, revision in REVISIONS.items()}
    assert codes == {**dict.fromkeys(list(REVISIONS)[:4], -32002), MODERN: -32602}
    assert code_of(InvalidParams("x"), REVISIONS["2025-11-25"]) == -32602


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        ("add", "add"),
        ("=?base64?YWRk?=", "add"),
        ("=?base64??=", ""),
        ("=?BASE64?YWRk?=", "=?BASE64?YWRk?="),
        ("=?base64?YWRk", "=?base64?YWRk"),
        ("base64?YWRk?=", "base64?YWRk?="),
        ("=?base64?=", "=?base64?="),
        ("=?base64?5aSp5rCX?=", "天気"),
        ("=?base64?PT9iYXNlNjQ/WVdSaz89?=", "=?base64?YWRk?="),
    ],
)
def test_the_wrapping_of_a_mirrored_value_is_undone_once(value: str, decoded: str) -> None:
    assert decode_header(value) == decoded


@pytest.mark.parametrize(
    "wrapped", ["%%%", "YWR", "YWRk=", "YWRl\n", "YW Rk", "/w==", "YWR=", "YQ", "YR==", "ÿ", "YWRk===="]
)
def test_a_wrapping_that_is_not_strict_base64_of_utf_8_is_refused(wrapped: str) -> None:
    with pytest.raises(HeaderMismatch):
        decode_header(f"=?base64?{wrapped}?=")


@given(st.text())
def test_decoding_gives_a_text_or_a_mismatch(value: str) -> None:
    for text in (value, f"=?base64?{value}?="):
        try:
            decode_header(text)
        except HeaderMismatch:
            pass


# Batches


def plain(method: str = "tools/list", **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, **more}


@pytest.mark.parametrize("size", [1, MAX_BATCH])
def test_a_batch_of_the_one_revision_that_has_them(size: int) -> None:
    for fields in ({}, {"mcp-protocol-version": "2025-03-26"}):
        batch = route([plain()] * size, fields, SERVED)
        assert isinstance(batch, Batch)
        assert {call.revision.name for call in batch.calls} == {"2025-03-26"}
        assert len(batch.calls) == size


def test_where_that_revision_is_not_served_there_are_no_batches() -> None:
    assert code([plain()], {}, ("2025-06-18", MODERN)) == -32600


@pytest.mark.parametrize("fields", [{}, {"mcp-protocol-version": "2025-11-25"}, {"mcp-protocol-version": MODERN}])
def test_notifications_are_accepted_in_every_era(fields: dict[str, str]) -> None:
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert isinstance(route(notification, fields, SERVED), Accepted)


def test_a_posted_response_is_handed_on_in_the_legacy_eras_only() -> None:
    response = {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}
    accepted = route(response, {"mcp-protocol-version": "2025-11-25"}, SERVED)
    assert isinstance(accepted, Accepted)
    assert accepted.message == Response(1, {"result": {"a": 1}})
    assert code(response) == -32600


HEADER_VALUES = st.sampled_from(["", "2025-03-26", "2025-11-25", MODERN, "x", "tools/call", "add", "=?base64?x?="])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([*SERVED, "tools/call", "2.0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "method", "params", "_meta", "name", "result", VERSION, CAPABILITIES]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(VALUES, st.dictionaries(st.sampled_from(list(HEADERS)), HEADER_VALUES))
def test_whatever_comes_has_an_outcome(value: object, fields: dict[str, str]) -> None:
    outcome = route(value, fields, SERVED)
    assert isinstance(outcome, Call | Batch | Accepted | Refused)
    if isinstance(outcome, Refused):
        assert outcome.status == 400
        assert "\n" not in outcome.error.message
