"""The official Python client 2.x with the tasks extension, written on what it offers for extensions."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, TypeVar

import mcp_types as types
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from pydantic import Field

from tests.http.door import JsonObject

T = TypeVar("T")

SECONDS: Final = 20
ANSWER_AFTER_S: Final = 1.0
ANSWERS: Final[dict[str, dict[str, Any]]] = {"Name?": {"name": "Ada"}, "Age?": {"age": 36}}


class Created(types.Result):
    """The answer to a `tools/call` that became a task."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: Literal["working"]
    ttl_ms: int | None = Field(alias="ttlMs")
    poll_interval_ms: int = Field(alias="pollIntervalMs")


class Task(types.Result):
    """The answer to `tasks/get`."""

    task_id: str = Field(alias="taskId")
    status: types.TaskStatus
    status_message: str | None = Field(None, alias="statusMessage")
    input_requests: dict[str, JsonObject] | None = Field(None, alias="inputRequests")
    result: types.CallToolResult | None = None
    error: types.ErrorData | None = None


class TaskRequest(types.Request[dict[str, Any], str]):
    """`tasks/get`, `tasks/update` or `tasks/cancel`, with the header that names the task."""

    name_param: ClassVar[str | None] = "taskId"


class Tasks(ClientExtension):
    """Declares tasks, and sees a task through to its result."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.seen: list[Task] = []
        """The task each time it was not the same as before."""

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=Created, resolve=self._resolve),)

    async def _resolve(self, created: Created, context: ClaimContext) -> types.CallToolResult:
        while True:
            task = await get(context.session, created.task_id)
            if not self.seen or task != self.seen[-1]:
                self.seen.append(task)
            if task.result is not None:
                return task.result
            assert task.status in ("working", "input_required"), task
            for key, question in list((task.input_requests or {}).items())[:1]:
                answer = {"action": "accept", "content": ANSWERS[question["params"]["message"]]}
                await send(context.session, "tasks/update", created.task_id, inputResponses={key: answer})
            await asyncio.sleep(created.poll_interval_ms / 1000)


async def send(session: ClientSession, method: str, task_id: str, **params: object) -> types.Result:
    request = TaskRequest(method=method, params={"taskId": task_id, **params})
    return await session.send_request(request, types.Result)


async def get(session: ClientSession, task_id: str) -> Task:
    return await session.send_request(TaskRequest(method="tasks/get", params={"taskId": task_id}), Task)


@dataclass(slots=True)
class User:
    """Answers after some time; `asked` runs while the question is open."""

    asked: Callable[[], None] = lambda: None
    seen: list[str] = field(default_factory=list)

    async def elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.seen.append(params.message)
        await asyncio.sleep(ANSWER_AFTER_S)
        await asyncio.to_thread(self.asked)
        return types.ElicitResult(action="accept", content=ANSWERS[params.message])


def talk(
    url: str,
    mode: str,
    conversation: Callable[[Client], Awaitable[T]],
    *,
    user: User | None = None,
    extensions: Sequence[ClientExtension] = (),
) -> T:
    """Connect, hold the conversation and hang up."""

    async def main() -> T:
        client = Client(
            streamable_http_client(f"{url}/mcp"),
            mode=mode,
            read_timeout_seconds=SECONDS,
            elicitation_callback=user.elicit if user else None,
            extensions=list(extensions),
        )
        async with client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(main(), SECONDS))
