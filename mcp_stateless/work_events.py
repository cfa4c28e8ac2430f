"""The events behind long calls: "work on this call", and Lambda's report that such an event came to nothing."""

from collections.abc import Mapping
from typing import Any

from mcp_stateless.aws import EventRow, Result
from mcp_stateless.calls.desk import CallDesk
from mcp_stateless.calls.launch import WORK_KEY
from mcp_stateless.calls.worker import Worker
from mcp_stateless.endpoint import Endpoint


def work_rows(worker: Worker, desk: CallDesk, endpoint: Endpoint) -> tuple[EventRow, ...]:
    """Rows for the Lambda entry. Both functions of a template run the same code; which events come differs."""

    async def work(event: Mapping[str, str], context: Any) -> Result:
        remaining = getattr(context, "get_remaining_time_in_millis", None)
        await endpoint.started()
        await worker.work(event[WORK_KEY], remaining_ms=remaining() if remaining else None, context=context)
        return {"worked": True}

    async def lost(event: Mapping[str, Mapping[str, str]], context: object) -> Result:
        was_dropped = event.get("requestContext", {}).get("condition") == "EventAgeExceeded"
        await desk.lost(event["requestPayload"][WORK_KEY], was_dropped=was_dropped)
        return {"noted": True}

    return (
        EventRow("work", _is_work, work, is_asynchronous=True),
        EventRow("lost work", _is_lost_work, lost, is_asynchronous=True),
    )


def _is_work(event: object) -> bool:
    return isinstance(event, Mapping) and isinstance(event.get(WORK_KEY), str)


def _is_lost_work(event: object) -> bool:
    """An OnFailure destination record (Lambda, "Asynchronous invocation", destinations)."""
    return isinstance(event, Mapping) and _is_work(event.get("requestPayload"))
