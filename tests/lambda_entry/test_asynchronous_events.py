"""Events that nobody waits for: a failure has to be seen by Lambda, which then tells whoever is to know."""

import pytest

from mcp_stateless.aws import EventFailed, EventRow, LambdaHandler, Result
from mcp_stateless.settings import Settings
from mcp_stateless.testing import lambda_context


async def nothing(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no HTTP here")


async def failing(event: object, context: object) -> Result:
    raise OSError("the table is away")


def handler(*, is_asynchronous: bool) -> LambdaHandler:
    row = EventRow("work", lambda event: event == "work", failing, is_asynchronous)
    return LambdaHandler(nothing, Settings(), rows=(row,))


def test_a_failed_asynchronous_event_is_a_failed_invocation(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(EventFailed, match="work"):
        handler(is_asynchronous=True)("work", lambda_context())
    assert "the table is away" in caplog.text


async def failing_in_a_loop() -> None:
    handler(is_asynchronous=True)("work", lambda_context())


def test_it_is_one_too_where_a_loop_is_running_already() -> None:
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(EventFailed):
            loop.run_until_complete(failing_in_a_loop())
    finally:
        loop.close()


def test_any_other_event_is_answered_whatever_happens() -> None:
    assert handler(is_asynchronous=False)("work", lambda_context())["statusCode"] == 500


def test_the_next_event_is_served() -> None:
    failed = handler(is_asynchronous=True)
    with pytest.raises(EventFailed):
        failed("work", lambda_context())
    assert failed({}, lambda_context()) == {"ignored": "empty event"}
