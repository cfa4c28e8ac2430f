"""A handler that `Subprocess` environments import in these tests."""

import os
import sys
import time
from typing import Any

calls = 0


def handler(event: Any, context: Any) -> Any:
    """Do what the event says; count the calls of this process."""
    global calls
    calls += 1
    print("what a handler prints is no answer")
    action = event.get("action") if isinstance(event, dict) else None
    if action == "raise":
        raise ValueError("no such action")
    if action == "exit":
        os._exit(3)
    if action == "hang":
        time.sleep(600)
    if action == "read stdin":
        return {"read": sys.stdin.read()}
    body = f"{os.getpid()} {calls} {context.get_remaining_time_in_millis() > 0} {os.environ.get('SAMPLE', '')}"
    return {"statusCode": 200, "headers": {"content-type": "text/plain"}, "body": body}
