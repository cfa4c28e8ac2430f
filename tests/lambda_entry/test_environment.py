"""One handler over the life of an execution environment: loops, threads, time, leftovers, other events."""

import asyncio
import gc
import json
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mangum.types import Receive, Scope, Send

from mcp_stateless import MCPServer
from mcp_stateless.aws import EventRow, LambdaHandler
from mcp_stateless.invocation import SCOPE_KEY, Invocation
from mcp_stateless.settings import Settings
from mcp_stateless.testing import Client, lambda_context
from mcp_stateless.testing.events import alb_event, function_url_event, http_api_event, rest_api_event

App = Callable[[Scope, Receive, Send], Awaitable[None]]


def app_that(act: Callable[[Scope], Awaitable[object]]) -> App:
    """An application that does something and answers 200 with what it returned."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = str(await act(scope)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": body})

    return app


async def nothing(scope: Scope) -> str:
    return "done"


async def loop_id(scope: Scope) -> int:
    return id(asyncio.get_running_loop())


def test_one_loop_serves_all_invocations_from_any_thread_and_after_other_loops() -> None:
    handler = LambdaHandler(app_that(loop_id), Settings())
    bodies = [handler(http_api_event())["body"]]
    asyncio.run(asyncio.sleep(0))
    bodies.append(handler(http_api_event())["body"])
    thread = threading.Thread(target=lambda: bodies.append(handler(http_api_event())["body"]))
    thread.start()
    thread.join(10)

    async def inside_a_running_loop() -> str:
        body: str = handler(http_api_event())["body"]
        return body

    bodies.append(asyncio.run(inside_a_running_loop()))
    assert len(bodies) == 4
    assert len(set(bodies)) == 1


def test_a_handler_made_in_a_thread_without_a_loop_works_there() -> None:
    results: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: results.append(LambdaHandler(app_that(nothing), Settings())(alb_event())))
    thread.start()
    thread.join(10)
    assert results[0]["statusCode"] == 200


def test_threads_that_call_one_handler_wait_for_each_other() -> None:
    running: list[int] = []
    most: list[int] = []

    async def count(scope: Scope) -> str:
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0)
        running.pop()
        return "done"

    handler = LambdaHandler(app_that(count), Settings())
    threads = [threading.Thread(target=handler, args=(http_api_event(),)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == [1] * 20


def test_a_request_that_calls_its_own_handler_is_told_so_instead_of_waiting_for_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def nested(scope: Scope) -> int:
        status: int = handler(http_api_event())["statusCode"]
        return status

    handler = LambdaHandler(app_that(nested), Settings())
    assert handler(http_api_event())["body"] == "500"
    assert "a handler of its own" in caplog.text


def test_a_request_may_call_another_handler() -> None:
    other = LambdaHandler(app_that(nothing), Settings())

    async def nested(scope: Scope) -> str:
        body: str = other(http_api_event())["body"]
        return body

    assert LambdaHandler(app_that(nested), Settings())(http_api_event())["body"] == "done"


@pytest.mark.parametrize(
    ("event", "remaining_ms", "settings", "seconds", "limit"),
    [
        (http_api_event(), 60_000, Settings(), 29.0, "API Gateway HTTP API ends a request after 30 s"),
        (rest_api_event(), 60_000, Settings(), 28.0, "API Gateway REST API ends a request after 29 s"),
        (http_api_event(), 3_000, Settings(), 2.0, "the Lambda function's timeout ends the invocation"),
        (function_url_event(), 60_000, Settings(), 59.0, "the Lambda function's timeout ends the invocation"),
        (alb_event(), 60_000, Settings(), 59.0, "the Lambda function's timeout ends the invocation"),
        (
            rest_api_event(),
            90_000,
            Settings(gateway_timeout_ms=60_000, deadline_margin_ms=500),
            59.5,
            "the gateway in front ends a request after 60 s",
        ),
        (http_api_event(), 800, Settings(), 0.4, "the Lambda function's timeout ends the invocation"),
        (http_api_event(), None, Settings(), 29.0, "API Gateway HTTP API ends a request after 30 s"),
        (function_url_event(), None, Settings(), None, ""),
    ],
)
def test_the_deadline_is_the_nearest_limit_less_the_margin(
    event: dict[str, Any], remaining_ms: int | None, settings: Settings, seconds: float | None, limit: str
) -> None:
    found: list[Invocation] = []

    async def look(scope: Scope) -> str:
        found.append(scope[SCOPE_KEY])
        return "done"

    handler = LambdaHandler(app_that(look), settings, clock=lambda: 100.0)
    context = None if remaining_ms is None else lambda_context(remaining_ms, clock=lambda: 0.0)
    assert handler(event, context)["statusCode"] == 200
    assert found[0].deadline == (None if seconds is None else pytest.approx(100 + seconds))
    assert found[0].limit == limit
    assert found[0].context is context


def test_an_application_past_its_time_is_stopped_and_the_next_request_served() -> None:
    async def act(scope: Scope) -> str:
        if scope["path"] == "/slow":
            await asyncio.sleep(60)
        return "done"

    handler = LambdaHandler(app_that(act), Settings(deadline_margin_ms=180))
    slow = handler(http_api_event("GET", "/slow"), lambda_context(200))
    assert slow["statusCode"] == 500
    error = {"code": -32603, "message": "The request was stopped: the Lambda function's timeout ends the invocation"}
    assert json.loads(slow["body"])["error"] == error
    assert handler(http_api_event("GET", "/fast"), lambda_context(5_000))["body"] == "done"


def test_a_task_that_outlives_the_reply_by_a_little_is_awaited(caplog: pytest.LogCaptureFixture) -> None:
    flags: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def write_flag() -> None:
        await asyncio.sleep(0)
        flags.append("written")

    async def act(scope: Scope) -> str:
        loops.append(asyncio.get_running_loop())
        scope["test.task"] = asyncio.create_task(write_flag())
        return "done"

    assert LambdaHandler(app_that(act), Settings())(http_api_event())["body"] == "done"
    assert flags == ["written"]
    assert not asyncio.all_tasks(loops[0])
    assert not caplog.records


def test_a_task_that_goes_on_is_cancelled_and_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    kept: list[asyncio.Task[None]] = []

    async def never_ends() -> None:
        await asyncio.Event().wait()

    async def act(scope: Scope) -> str:
        loops.append(asyncio.get_running_loop())
        kept.append(asyncio.create_task(never_ends()))
        return "done"

    assert LambdaHandler(app_that(act), Settings())(http_api_event())["body"] == "done"
    assert not asyncio.all_tasks(loops[0])
    assert kept[0].cancelled()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "never_ends" in record.getMessage()


def test_a_task_that_fails_after_the_reply_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[asyncio.Task[None]] = []

    async def fails() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        raise ValueError("too late")

    async def act(scope: Scope) -> str:
        kept.append(asyncio.create_task(fails()))
        return "done"

    assert LambdaHandler(app_that(act), Settings())(http_api_event())["body"] == "done"
    assert "too late" in caplog.text


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (None, "empty event"),
        ({}, "empty event"),
        ("", "empty event"),
        ({"source": "serverless-plugin-warmup"}, "warm-up event"),
        ({"source": "aws.events", "detail-type": "Scheduled Event"}, "scheduled event"),
        ({"key1": "v"}, "console test event"),
        ({"key1": "value1", "key2": "value2", "key3": "value3"}, "console test event"),
    ],
)
def test_events_that_ask_for_nothing_are_answered_quietly(
    event: object, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def unexpected(scope: Scope) -> str:
        raise AssertionError("nothing may be dispatched")

    assert LambdaHandler(app_that(unexpected), Settings())(event, None) == {"ignored": name}
    assert not caplog.records


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"Records": [{"secret": "hunter2"}]}, "'Records'"),
        ({f"a{number}": "hunter2" for number in range(50)}, "and more"),
        (["hunter2"], "a list"),
        ("hunter2", "a str"),
        (7, "a int"),
    ],
)
def test_an_unknown_event_is_one_line_that_tells_its_shape_but_no_value(
    event: object, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert LambdaHandler(app_that(nothing), Settings())(event, None) == {"ignored": "unknown event"}
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert words in record.getMessage()
    assert "hunter2" not in record.getMessage()


def test_other_kinds_of_events_can_be_served_too(caplog: pytest.LogCaptureFixture) -> None:
    async def work(event: Any, context: object) -> dict[str, Any]:
        if event["work"] == "bad":
            raise ValueError("cannot do that")
        return {"worked": event["work"], "loop": id(asyncio.get_running_loop())}

    row = EventRow("work", lambda event: isinstance(event, dict) and "work" in event, work)
    handler = LambdaHandler(app_that(loop_id), Settings(), rows=[row])
    loop = int(handler(http_api_event())["body"])
    assert handler({"work": "good"}) == {"worked": "good", "loop": loop}
    assert handler({"work": "bad"})["statusCode"] == 500
    assert "cannot do that" in caplog.text


# Each loop holds files open: whoever makes handlers again and again, as tests do, would run out of them.
def test_a_handler_that_nobody_holds_takes_its_loop_with_it() -> None:
    server = MCPServer("sample")
    handler = server.lambda_handler()
    Client(handler).initialize()
    held = weakref.ref(handler)
    del handler
    gc.collect()
    assert held() is None
