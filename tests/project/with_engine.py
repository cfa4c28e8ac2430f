"""Run a command with a DynamoDB-compatible engine: `python -m tests.project.with_engine COMMAND...`.

The engine is for this command alone, is in memory, and ends with it.
"""

import os
import signal
import subprocess
import sys

from tests.calls.engine import running


def main(command: list[str]) -> int:
    with running() as engine:
        process = subprocess.Popen(command, env={**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": engine.url})
        # Ctrl-C at the terminal is for the command; the engine ends after it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
