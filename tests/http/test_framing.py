"""JSON-RPC framing: ids, parse errors, envelopes, batches, params; and that no refusal says more than it must."""

import json
from typing import Any

import pytest

from mcp_stateless import MCPServer
from tests.http.door import MODERN, Answer, Door, Weight, initialize, modern_meta, request

LIST = request("tools/list")
CALL = request("tools/call", {"name": "run", "arguments": {}})
NOTIFICATION = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SECRET = "s3cr3t-1nput"


class Sample:
    """A server with one tool that counts its runs."""

    def __init__(self, weight: Weight) -> None:
        server = MCPServer("sample", "1")
        self.runs = 0

        @server.tool()
        def run() -> str:
            """Count."""
            self.runs += 1
            return "ran"

        @server.prompt()
        def greet(name: str) -> str:
            """Greet."""
            return f"Hello {name}"

        self.door = Door(weight(server))


@pytest.fixture
def sample(weight: Weight) -> Sample:
    return Sample(weight)


def refused(answer: Answer, status: int, code: int) -> dict[str, Any]:
    """The message of a refusal, which is JSON-RPC, one short fixed line and no echo of the input."""
    message: dict[str, Any] = answer.json
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert message["jsonrpc"] == "2.0"
    assert message["error"]["code"] == code
    text = message["error"]["message"]
    assert "pydantic" not in text.lower()
    assert "\n" not in text
    assert len(text) < 200
    assert SECRET not in answer.body.decode()
    assert message.get("id", "") is not None
    return message


# B46
@pytest.mark.parametrize("request_id", [0, "", -1, 9007199254740993, 10**30, "0", "ünï", "日本 🎉", 1])
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "no/such"])
def test_every_string_and_integer_is_an_id_and_comes_back_as_it_was(
    sample: Sample, method: str, request_id: object
) -> None:
    params = {"name": "run"} if method == "tools/call" else None
    for answer in (
        sample.door.legacy(method, params, request_id=request_id),
        sample.door.modern(method, params, request_id=request_id),
    ):
        assert answer.json["id"] == request_id
        assert type(answer.json["id"]) is type(request_id)


# B47, B48
@pytest.mark.parametrize("request_id", [None, 1.5, 1.0, True, False, [], {}, ["a"]])
@pytest.mark.parametrize("modern", [False, True])
def test_anything_else_is_no_id_and_runs_nothing(sample: Sample, modern: bool, request_id: object) -> None:
    ask = sample.door.modern if modern else sample.door.legacy
    answer = ask("tools/call", {"name": "run", "arguments": {}}, request_id=request_id)
    assert "id" not in refused(answer, 400, -32600)
    assert sample.runs == 0


# B50
@pytest.mark.parametrize(
    "body",
    [
        "{bad",
        f'{{"jsonrpc": "2.0", "id": "{SECRET}"',
        "",
        None,
        b"\xff\xfe",
        "NaN",
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":NaN}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":-Infinity}}',
        '{"a":1}{"b":2}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/list",}',
        "'single'",
        '"\\ud800',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/\xff"}',
        "[" * 100,
        b"\xef\xbb\xbf",
        "\x00",
    ],
)
def test_what_is_not_json_is_a_parse_error_without_an_id(sample: Sample, body: object) -> None:
    assert "id" not in refused(sample.door.post(body), 400, -32700)


def test_a_byte_order_mark_is_ignored(sample: Sample) -> None:
    assert sample.door.post(b"\xef\xbb\xbf" + json.dumps(LIST).encode()).status == 200


def test_a_key_that_comes_twice_is_read_the_same_by_every_check(sample: Sample) -> None:
    body = '{"jsonrpc":"2.0","id":1,"id":2,"method":"no/such","method":"ping"}'
    assert sample.door.post(body).json == {"jsonrpc": "2.0", "id": 2, "result": {}}


# B52
@pytest.mark.parametrize("version", ["1.0", 2.0, 2, None, [], SECRET])
def test_another_jsonrpc_version_is_refused_with_the_requests_id(sample: Sample, version: object) -> None:
    message = refused(sample.door.post({**CALL, "jsonrpc": version, "id": "mine"}), 400, -32600)
    assert message["id"] == "mine"
    assert sample.runs == 0


@pytest.mark.parametrize("method", [5, None, "", [], {"a": SECRET}, True])
def test_a_method_is_a_text_that_is_not_empty(sample: Sample, method: object) -> None:
    assert refused(sample.door.post({**LIST, "method": method}), 400, -32600)["id"] == 1


@pytest.mark.parametrize("missing", ["jsonrpc", "method"])
def test_an_envelope_has_all_its_parts(sample: Sample, missing: str) -> None:
    message = {key: value for key, value in LIST.items() if key != missing}
    assert refused(sample.door.post(message), 400, -32600)["id"] == 1


@pytest.mark.parametrize("body", ["5", '"text"', "null", "true", "{}", "1.5"])
def test_a_body_is_one_object(sample: Sample, body: str) -> None:
    refused(sample.door.post(body), 400, -32600)


# B53
@pytest.mark.parametrize("params", [[], ["a"], SECRET, 5, None, True])
def test_params_are_an_object(sample: Sample, params: object) -> None:
    assert refused(sample.door.post({**LIST, "params": params}), 400, -32602)["id"] == 1


@pytest.mark.parametrize("name", [5, None, ["a"], {"a": SECRET}, "", SECRET])
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
def test_a_name_that_names_nothing_is_invalid_params(sample: Sample, method: str, name: object) -> None:
    refused(sample.door.legacy(method, {"name": name}), 200, -32602)
    modern = sample.door.modern(method, {"name": name})
    refused(modern, 200, -32602)


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
def test_a_missing_name_is_invalid_params(sample: Sample, method: str) -> None:
    refused(sample.door.legacy(method, {}), 200, -32602)
    refused(sample.door.modern(method, {}), 200, -32602)


@pytest.mark.parametrize("arguments", [[], "x", 5, True])
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
def test_arguments_are_an_object(sample: Sample, method: str, arguments: object) -> None:
    name = "run" if method == "tools/call" else "greet"
    refused(sample.door.legacy(method, {"name": name, "arguments": arguments}), 200, -32602)
    assert sample.runs == 0


@pytest.mark.parametrize("meta", ["x", 5, [], True])
def test_meta_is_an_object(sample: Sample, meta: object) -> None:
    refused(sample.door.legacy("tools/call", {"name": "run", "_meta": meta}), 400, -32602)
    assert sample.runs == 0


@pytest.mark.parametrize("token", [{}, [], 1.5, True])
def test_a_progress_token_is_text_or_an_integer(sample: Sample, token: object) -> None:
    refused(sample.door.legacy("tools/call", {"name": "run", "_meta": {"progressToken": token}}), 400, -32602)
    refused(sample.door.modern("tools/call", {"name": "run"}, meta={"progressToken": token}), 400, -32602)
    assert sample.runs == 0


# B51
@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25", MODERN, "1999-01-01"])
@pytest.mark.parametrize("batch", [[LIST, {**LIST, "id": 2}], [], [1], [NOTIFICATION], [CALL]])
def test_only_one_revision_has_batches(sample: Sample, version: str, batch: list[object]) -> None:
    refused(sample.door.post(batch, {"mcp-protocol-version": version}), 400, -32600)
    assert sample.runs == 0


@pytest.mark.parametrize("version", [None, "2025-03-26"])
def test_a_batch_is_answered_by_one_array_in_order(sample: Sample, version: str | None) -> None:
    batch = [LIST, NOTIFICATION, {**CALL, "id": "b"}, request("no/such", None, 3), request("tools/call", {}, 4)]
    answer = sample.door.post(batch, {"mcp-protocol-version": version})
    first, second, third, fourth = answer.json
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert (first["id"], second["id"], third["id"], fourth["id"]) == (1, "b", 3, 4)
    assert first["result"]["tools"]
    assert second["result"]["content"][0]["text"] == "ran"
    assert (third["error"]["code"], fourth["error"]["code"]) == (-32601, -32602)


@pytest.mark.parametrize("batch", [[NOTIFICATION], [NOTIFICATION, {"jsonrpc": "2.0", "id": 1, "result": {}}]])
def test_a_batch_that_wants_no_answer_is_accepted(sample: Sample, batch: list[object]) -> None:
    answer = sample.door.post(batch)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize(
    "batch",
    [
        [],
        [1],
        [[LIST]],
        [CALL, {}],
        [CALL, {**LIST, "id": None}],
        [CALL, request("initialize", initialize("2025-03-26"))],
        [CALL, request("tools/list", {"_meta": modern_meta()})],
        [CALL] * 51,
    ],
)
def test_a_batch_with_one_bad_message_runs_nothing(sample: Sample, batch: list[object]) -> None:
    refused(sample.door.post(batch), 400, -32600)
    assert sample.runs == 0


# B22
@pytest.mark.parametrize("modern", [False, True])
def test_a_failing_start_is_a_json_rpc_error_and_not_a_page(weight: Weight, modern: bool) -> None:
    server = MCPServer("sample")
    server.on_start(lambda: dict[str, str]()[SECRET])
    door = Door(weight(server))
    refused(door.modern("tools/list") if modern else door.legacy("tools/list"), 500, -32603)


def test_a_posted_response_is_refused_at_the_modern_revision(sample: Sample) -> None:
    response = {"jsonrpc": "2.0", "id": 4, "result": {}}
    assert refused(sample.door.post(response, {"mcp-protocol-version": MODERN}), 400, -32600)["id"] == 4
