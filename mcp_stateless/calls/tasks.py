"""The tasks extension `io.modelcontextprotocol/tasks` (2026-07-28) over call records.

A task's id is the sealed id of its record: bound to the caller, so that a forged or foreign one costs no read.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from mcp_stateless.calls.desk import NEEDS_TASKS, CallDesk, declares_tasks, input_requests
from mcp_stateless.calls.polled import retry_after
from mcp_stateless.calls.record import CallRecord, State
from mcp_stateless.calls.store import StoreMisconfigured, StoreUnavailable
from mcp_stateless.errors import InternalError, InvalidParams, MissingClientCapability
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.inbound import Call, input_responses
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.protocol.sealing import Rejected, seal, unseal

PURPOSE: Final = "task"

STATUS: Final[Mapping[State, str]] = {
    State.PENDING: "working",
    State.RUNNING: "working",
    State.ASKING: "input_required",
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
}

log = logging.getLogger(__name__)


def created(desk: CallDesk, record: CallRecord, principal: Principal) -> Wire:
    """The answer to the `tools/call` that became a task."""
    body, expires_at = record.call_id.encode(), record.until_ms // 1000
    task_id = seal(desk.keys, PURPOSE, body, bound_to=(principal.key,), expires_at=expires_at)
    return {"resultType": "task", **_task(desk, record, task_id)}


async def get(desk: CallDesk, call: Call, principal: Principal) -> Wire:
    """`tasks/get`: the task with all that is known of it. A pure read, unless the task is past its due time."""
    call_id = _call_id(desk, call, principal)
    try:
        found = await desk.read(call_id)
    except (StoreUnavailable, StoreMisconfigured) as error:
        log.warning("task %s could not be read: %s", call_id, error)
        raise InternalError("The task cannot be looked up right now. Try again in a moment.") from error
    if found is None:
        raise InvalidParams("Unknown task")
    task_id = str(call.params["taskId"])
    return {**_task(desk, found.record, task_id), **_details(found.record)}


async def update(desk: CallDesk, call: Call, principal: Principal) -> Wire:
    """`tasks/update`: answers to questions, some or all of them; unknown, late and repeated ones are ignored."""
    call_id = _call_id(desk, call, principal)
    answers = input_responses(call.params)
    try:
        for key, answer in answers.items():
            await desk.answer(call_id, key, {"result": answer})
    except (StoreUnavailable, StoreMisconfigured) as error:
        log.error("an answer to task %s was lost: %s", call_id, error)
        raise InternalError("The answer could not be recorded. Try again in a moment.") from error
    return {}


async def cancel(desk: CallDesk, call: Call, principal: Principal) -> Wire:
    """`tasks/cancel`: acknowledged, whatever state the task is in."""
    await desk.cancel(_call_id(desk, call, principal))
    return {}


def _call_id(desk: CallDesk, call: Call, principal: Principal) -> str:
    """The record behind a task id.

    Raises:
        MissingClientCapability: this request does not declare tasks.
        InvalidParams: there is no such task for this caller.
    """
    if not declares_tasks(call):
        raise MissingClientCapability(NEEDS_TASKS)
    task_id = call.params.get("taskId")
    try:
        text = task_id if isinstance(task_id, str) else ""
        body = unseal(desk.keys, PURPOSE, text, bound_to=(principal.key,), now=desk.clock(), max_bytes=256)
    except Rejected as reason:
        log.warning("a task id was refused: %s", reason)
        raise InvalidParams("Unknown task") from reason
    return body.decode()


def _task(desk: CallDesk, record: CallRecord, task_id: str) -> Wire:
    task: Wire = {
        "taskId": task_id,
        "status": STATUS[record.state],
        "createdAt": _iso(record.created_ms),
        "lastUpdatedAt": _iso(record.updated_ms or record.created_ms),
        "ttlMs": record.until_ms - record.created_ms,
        "pollIntervalMs": retry_after(desk, record),
    }
    if record.progress is not None and record.progress.message is not None:
        task["statusMessage"] = record.progress.message
    return task


def _details(record: CallRecord) -> Wire:
    """What the status promises: the open questions, the result, or the error."""
    if record.state is State.ASKING:
        return {"inputRequests": input_requests(record)}
    outcome = json.loads(record.outcome or "{}")
    if record.state is State.COMPLETED:
        return {"result": {"resultType": "complete", **outcome["result"]}}
    if record.state is not State.FAILED:
        return {}
    if "error" in outcome:
        return {"error": outcome["error"], "statusMessage": outcome["error"]["message"]}
    text = outcome["result"]["content"][0]["text"]
    return {"error": {"code": InternalError.code, "message": text}, "statusMessage": text}


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
