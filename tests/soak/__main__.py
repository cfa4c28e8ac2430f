"""All scenarios in real time: `python -m tests.soak [--calls 200] [--only NAME]`. About ten minutes on two cores."""

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.deployment import LOG, Deployment, Faults, deployed
from tests.soak.verdict import Terms, problems, summary

SERVERS: Final = 8
WORKERS: Final = 8
CALLERS: Final = 24

TOOL_S: Final = 8
LAUNCH_S: Final = 30
"""After that a call that nobody claimed is launched again, by the next poll."""
LATE_S: Final = 10
POLL_S: Final = 2
BUSY_S: Final = 10
"""What two cores take for twenty-four callers at once."""
UNDISTURBED_S: Final = TOOL_S + POLL_S + BUSY_S
DUE_S: Final = LAUNCH_S + TOOL_S + LATE_S + POLL_S + BUSY_S


@dataclass(frozen=True, slots=True)
class Scenario:
    """Some calls, what goes wrong meanwhile, and what must hold of every one of them."""

    name: str
    faults: Faults
    terms: Terms


SCENARIOS: Final = (
    Scenario("calm", Faults(), Terms(UNDISTURBED_S)),
    Scenario("duplicated events", Faults(duplicated_events=0.3), Terms(UNDISTURBED_S)),
    Scenario("frozen server", Faults(frozen_requests=0.05), Terms(UNDISTURBED_S)),
    # An event that is launched again may be lost again.
    Scenario("lost events", Faults(lost_events=0.1, duplicated_events=0.1), Terms(DUE_S + 2 * LAUNCH_S)),
    Scenario("killed workers", Faults(killed_workers=0.15), Terms(DUE_S, errors_allowed=True)),
    Scenario(
        "killed workers, half of them unreported",
        Faults(killed_workers=0.1, lost_reports=0.5),
        Terms(DUE_S, errors_allowed=True),
    ),
    Scenario(
        "throttling store",
        Faults(throttled_requests=0.2),
        Terms(DUE_S + LAUNCH_S, errors_allowed=True),
    ),
    Scenario(
        "everything at once",
        Faults(
            duplicated_events=0.1,
            lost_events=0.05,
            killed_workers=0.05,
            lost_reports=0.2,
            frozen_requests=0.02,
            throttled_requests=0.2,
        ),
        Terms(DUE_S + 3 * LAUNCH_S, errors_allowed=True),
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="in each scenario")
    parser.add_argument("--log", type=Path, help="keep what the functions printed in this file")
    parser.add_argument("--only", help="the scenarios with this in their name")
    options = parser.parse_args()
    chosen = [each for each in SCENARIOS if options.only is None or options.only in each.name]
    with tempfile.TemporaryDirectory() as folder:
        with deployed(Path(folder), SERVERS, WORKERS) as deployment:
            found = [problem for each in chosen for problem in _run(each, options.calls, deployment)]
        if options.log is not None:
            shutil.copy(Path(folder) / LOG, options.log)
    print(f"== {len(found)} problems" if found else "== everything held", flush=True)
    return 1 if found else 0


def _run(scenario: Scenario, calls: int, deployment: Deployment) -> list[str]:
    print(f"== {scenario.name}", flush=True)
    started = time.monotonic()
    outcomes = deployment.run(scenario.name, calls, CALLERS, scenario.faults, patience_s=2 * scenario.terms.within_s)
    found = problems(outcomes, scenario.terms)
    print(f"{summary(outcomes)}; {time.monotonic() - started:.0f} s in all", *found, sep="\n", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
