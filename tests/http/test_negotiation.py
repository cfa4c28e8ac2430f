"""What a request says of its own body and of the answer it takes: Content-Type, Accept, and when an answer is SSE."""

import pytest

from mcp_stateless import Context, MCPServer, Settings
from tests.http.door import BOTH, MODERN, Answer, Door, Weight, request

LIST = request("tools/list")
SSE = "text/event-stream"


# B14
@pytest.mark.parametrize(
    "accept",
    [BOTH, "application/json", SSE, "*/*", "application/*", None, "Application/JSON; q=0.8", "text/html, */*;q=0.1"],
)
def test_a_reasonable_accept_header_is_answered_with_json(weight: Weight, accept: str | None) -> None:
    answer = Door(weight(sample())).post(LIST, {"accept": accept})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.result["tools"]


def test_only_an_explicit_refusal_of_json_is_not_acceptable(weight: Weight) -> None:
    answer = Door(weight(sample())).post(LIST, {"accept": "application/json;q=0"})
    assert (answer.status, answer.error["code"]) == (406, -32600)


def test_a_caller_that_refuses_json_and_takes_sse_gets_sse(weight: Weight) -> None:
    answer = Door(weight(sample())).post(LIST, {"accept": f"{SSE}, application/json;q=0"})
    (message,) = answer.stream
    assert message["result"]["tools"]


# B20
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=utf-8",
        "Application/JSON",
        'application/json;charset="UTF-8"',
        "application/json ; charset=utf-8",
    ],
)
def test_parameters_and_case_of_the_content_type_do_not_matter(weight: Weight, content_type: str) -> None:
    assert Door(weight(sample())).post(LIST, {"content-type": content_type}).status == 200


# B21
@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/plain; x=application/json",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json, text/plain",
        "",
        None,
    ],
)
def test_any_other_content_type_is_refused_and_nothing_runs(weight: Weight, content_type: str | None) -> None:
    server = MCPServer("sample")
    ran = []

    @server.tool()
    def run() -> str:
        """Run."""
        ran.append(1)
        return ""

    answer = Door(weight(server)).post(request("tools/call", {"name": "run"}), {"content-type": content_type})
    assert (answer.status, answer.error["code"]) == (415, -32600)
    assert "id" not in answer.json
    assert not ran


def sample(**settings: object) -> MCPServer:
    server = MCPServer("sample", settings=Settings.model_validate(settings))

    @server.tool()
    async def work(ctx: Context[None], fail: bool = False) -> str:
        """Report on the way."""
        await ctx.report_progress(1, 3, "started")
        await ctx.info({"at": 1}, logger_name="worker")
        await ctx.report_progress(2.5)
        await ctx.debug("detail")
        await ctx.report_progress(2)
        if fail:
            raise ValueError("a secret")
        return "done"

    @server.tool()
    def work_in_thread(ctx: Context[None]) -> str:
        """Report from a thread."""
        ctx.blocking.report_progress(1)
        ctx.blocking.info("half-way")
        ctx.blocking.report_progress(2, message="日本語\nsecond line")
        return "done"

    return server


def call(weight: Weight, token: object, accept: str = BOTH, name: str = "work", **settings: object) -> Answer:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    door = Door(weight(sample(**settings)))
    return door.legacy("tools/call", {"name": name, "arguments": {}, **meta}, headers={"accept": accept})


# B112, and progress on request
@pytest.mark.parametrize("token", ["token", "", 0, 7, -1])
def test_asked_for_progress_comes_in_one_finished_stream_response_last(weight: Weight, token: object) -> None:
    answer = call(weight, token)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    first, second, response = answer.stream
    assert first == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1, "total": 3, "message": "started"},
    }
    assert second["params"] == {"progressToken": token, "progress": 2.5}
    assert response["id"] == 1
    assert response["result"]["content"] == [{"type": "text", "text": "done"}]
    lines = answer.body.decode().split("\n")
    assert {line.partition(":")[0] for line in lines if line} == {"data"}
    assert answer.body.endswith(b"\n\n")


@pytest.mark.parametrize("accept", ["application/json", "*/*"])
def test_progress_is_dropped_for_a_caller_that_does_not_take_sse(weight: Weight, accept: str) -> None:
    answer = call(weight, 0, accept)
    assert answer.text == "done"


def test_nobody_asked_for_progress_so_there_is_none(weight: Weight) -> None:
    assert call(weight, None).text == "done"


def test_json_response_forbids_streams(weight: Weight) -> None:
    assert call(weight, 0, json_response=True, log_messages="debug").text == "done"


def test_a_caller_that_takes_nothing_but_sse_still_gets_it_with_json_response(weight: Weight) -> None:
    answer = call(weight, 0, f"{SSE}, application/json;q=0", json_response=True)
    assert answer.stream[-1]["result"]["content"]


def test_log_messages_never_change_the_answer_unless_the_server_offers_them(weight: Weight) -> None:
    assert call(weight, None, log_messages="off").text == "done"


def test_offered_log_messages_come_from_the_level_up_and_in_order(weight: Weight) -> None:
    log, response = call(weight, None, log_messages="info").stream
    assert log["method"] == "notifications/message"
    assert log["params"] == {"level": "info", "data": {"at": 1}, "logger": "worker"}
    assert response["result"]
    methods = [message.get("method", "answer") for message in call(weight, 1, log_messages="debug").stream]
    progress, log_message = "notifications/progress", "notifications/message"
    assert methods == [progress, log_message, progress, log_message, "answer"]


@pytest.mark.parametrize(("asked", "levels"), [(None, []), ("info", ["info"]), ("debug", ["info", "debug"])])
def test_a_modern_request_chooses_the_log_level_itself(weight: Weight, asked: str | None, levels: list[str]) -> None:
    door = Door(weight(sample(log_messages="error")))
    meta = {} if asked is None else {"io.modelcontextprotocol/logLevel": asked}
    answer = door.modern("tools/call", {"name": "work", "arguments": {}}, meta=meta)
    messages = answer.stream if levels else [answer.json]
    assert [message["params"]["level"] for message in messages[:-1]] == levels
    assert messages[-1]["result"]["resultType"] == "complete"


def test_threads_report_in_order_and_a_line_break_does_not_break_an_event(weight: Weight) -> None:
    first, second, response = call(weight, 1, name="work_in_thread").stream
    assert (first["params"]["progress"], second["params"]["message"]) == (1, "日本語\nsecond line")
    assert response["result"]["isError"] is False


def test_a_failure_ends_the_stream_like_a_result(weight: Weight) -> None:
    params = {"name": "work", "arguments": {"fail": True}, "_meta": {"progressToken": 1}}
    answer = Door(weight(sample())).legacy("tools/call", params)
    assert answer.stream[-1]["result"]["isError"] is True
    assert b"secret" not in answer.body


def test_the_oldest_revision_is_not_sent_a_progress_message(weight: Weight) -> None:
    params = {"name": "work", "arguments": {}, "_meta": {"progressToken": 1}}
    first, *_ = Door(weight(sample())).legacy("tools/call", params, version="2024-11-05").stream
    assert first["params"] == {"progressToken": 1, "progress": 1, "total": 3}


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_a_response_over_the_event_limit_goes_out_as_json(weight: Weight, version: str) -> None:
    server = MCPServer("sample", settings=Settings(max_event_bytes=2000))

    @server.tool()
    async def big(ctx: Context[None], size: int) -> str:
        """Return much."""
        await ctx.report_progress(1)
        return "a" * size

    door = Door(weight(server))
    for size, content_type in ((10, SSE), (3000, "application/json")):
        params: dict[str, object] = {"name": "big", "arguments": {"size": size}}
        meta: dict[str, object] = {"progressToken": 1}
        if version == MODERN:
            answer = door.modern("tools/call", params, meta=meta)
        else:
            answer = door.legacy("tools/call", {**params, "_meta": meta})
        assert answer.headers["content-type"] == content_type


@pytest.mark.parametrize("data", [float("nan"), {"a": [float("inf")]}, b"\xff", {1, 2}, object(), "\ud800", None])
def test_a_log_message_may_hold_anything_and_never_costs_the_call(weight: Weight, data: object) -> None:
    server = MCPServer("sample", settings=Settings(log_messages="debug"))

    @server.tool()
    async def log(ctx: Context[None]) -> str:
        """Log."""
        await ctx.info(data)
        return "done"

    note, response = Door(weight(server)).call("log").stream
    assert "data" in note["params"]
    assert response["result"]["content"][0]["text"] == "done"
