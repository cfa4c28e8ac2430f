"""Progress and log messages of a call that is answered in one reply: collected in order, sent before the result."""

import json
import math
from collections.abc import Sequence
from typing import Final

from pydantic_core import to_jsonable_python

from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.envelope import RequestId, notification_message
from mcp_stateless.protocol.inbound import LOG_LEVELS, Call, LogLevel
from mcp_stateless.protocol.revisions import Revision, Wire

MOST_NOTIFICATIONS: Final = 1000
"""Notifications kept for one reply; a tool that reports in a tight loop loses the later ones, not its result."""


class Collector:
    """The sink of a call answered in place. It keeps what the client asked for and its revision knows."""

    def __init__(self, call: Call, log_level: LogLevel | None) -> None:
        """`log_level`: least severe level to send, None for no log messages at all."""
        self.messages: list[Wire] = []
        self._call = call
        self._levels = severities(log_level)
        self._progress = -math.inf

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        token = self._call.progress_token
        if token is None or progress <= self._progress:
            return
        self._progress = progress
        self._keep(progress_message(token, progress, total, message, self._call.revision))

    async def log(self, level: LogLevel, data: object, logger_name: str | None) -> None:
        if level not in self._levels:
            return
        self._keep(log_message(level, data, logger_name))

    def _keep(self, message: Wire) -> None:
        if len(self.messages) < MOST_NOTIFICATIONS:
            self.messages.append(message)


def severities(least: LogLevel | None) -> Sequence[LogLevel]:
    """The levels that are sent when `least` is the least severe one wanted."""
    return () if least is None else LOG_LEVELS[LOG_LEVELS.index(least) :]


def log_message(level: LogLevel, data: object, logger_name: str | None) -> Wire:
    """A `notifications/message` with data of any kind, as JSON has it."""
    plain = to_jsonable_python(data, fallback=str, bytes_mode="base64")
    # NaN and the infinities are left as they are by that; here they become texts.
    params: Wire = {"level": level, "data": json.loads(json.dumps(plain), parse_constant=str)}
    if logger_name is not None:
        params["logger"] = logger_name
    return notification_message("notifications/message", params)


def progress_message(
    token: RequestId, progress: float, total: float | None, message: str | None, revision: Revision
) -> Wire:
    """A `notifications/progress`."""
    optional = {"total": total, "message": message}
    params: Wire = {"progressToken": token, "progress": progress}
    params.update({key: value for key, value in optional.items() if value is not None})
    return notification_message("notifications/progress", revisions.fields("progress", params, revision))
