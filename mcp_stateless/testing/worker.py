"""The process behind `Subprocess`: imports a handler, then answers one line of JSON with one line of JSON."""

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from mcp_stateless.testing.events import lambda_context


def load(target: str) -> Callable[[Any, Any], Any]:
    """Import `module:attribute`; the attribute may be a path of its own."""
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{target} is not callable")
    handler: Callable[[Any, Any], Any] = found
    return handler


def main(target: str) -> None:
    # What the handler prints goes to stderr: stdout belongs to the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    handler = load(target)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in requests:
        print(json.dumps(_answer(handler, json.loads(line))), file=answers, flush=True)


def _answer(handler: Callable[[Any, Any], Any], request: dict[str, Any]) -> dict[str, Any]:
    try:
        result = handler(request["event"], lambda_context(request["context_ms"]))
        return {"result": json.loads(json.dumps(result))}
    except Exception as error:  # the boundary of the runtime: a handler's error is an answer, too
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(sys.argv[1])
