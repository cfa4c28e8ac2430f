"""Progress and log messages of a call that is answered in one reply: collected in order, sent before the result."""

import math
from typing import Final

from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.envelope import notification_message
from mcp_stateless.protocol.inbound import LOG_LEVELS, Call, LogLevel
from mcp_stateless.protocol.revisions import Wire

MOST_NOTIFICATIONS: Final = 1000
"""Notifications kept for one reply; a tool that reports in a tight loop loses the later ones, not its result."""


class Collector:
    """The sink of a call answered in place. It keeps what the client asked for and its revision knows."""

    def __init__(self, call: Call, log_level: LogLevel | None) -> None:
        """`log_level`: least severe level to send, None for no log messages at all."""
        self.messages: list[Wire] = []
        self._call = call
        self._levels = () if log_level is None else LOG_LEVELS[LOG_LEVELS.index(log_level) :]
        self._progress = -math.inf

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        token = self._call.progress_token
        if token is None or progress <= self._progress:
            return
        self._progress = progress
        optional = {"total": total, "message": message}
        params: Wire = {"progressToken": token, "progress": progress}
        params.update({key: value for key, value in optional.items() if value is not None})
        self._keep("notifications/progress", revisions.fields("progress", params, self._call.revision))

    async def log(self, level: LogLevel, data: object, logger_name: str | None) -> None:
        if level not in self._levels:
            return
        params: Wire = {"level": level, "data": data}
        if logger_name is not None:
            params["logger"] = logger_name
        self._keep("notifications/message", params)

    def _keep(self, method: str, params: Wire) -> None:
        if len(self.messages) < MOST_NOTIFICATIONS:
            self.messages.append(notification_message(method, params))
