"""Every attack of the tests against every sandbox of this machine: a table of how each was held.

Table behind docs/sandbox.md, "How it isolates".

    python performance/sandbox_attacks.py [--json] [--runner NAME]

Exit status 1 where one got through.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "engine" / "sandbox"))

from attacks import Host, breach, held_how, run_attack
from hostile_code import ATTACKS, ATTACKS_ON_THE_CHANNEL

from agrotools.sandbox.runners import RUNNERS
from agrotools.sandbox.running import probe

WIDTH = 100


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--runner", action="append", help="default: all that hold")
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for attack in (*ATTACKS, *ATTACKS_ON_THE_CHANNEL):
        for runner in arguments.runner or [each for each in RUNNERS if probe(each).holds]:
            with Host() as host:
                started = time.perf_counter()
                result = run_attack(attack, runner, host)
                through = breach(attack, result, host)
            row = {
                "attack": attack.name,
                "runner": runner,
                "held": through is None,
                "how": held_how(result) if through is None else through,
                "seconds": round(time.perf_counter() - started, 2),
            }
            rows.append(row)
            if not arguments.as_json:
                said = f"{'held' if through is None else 'BREACH':6} {attack.name:40} {runner:11} {row['how']}"
                print(said if len(said) <= WIDTH + 59 else f"{said[: WIDTH + 58]}…", flush=True)
    if arguments.as_json:
        print(json.dumps(rows, indent=2))
    breaches = sum(not row["held"] for row in rows)
    if not arguments.as_json:
        print(f"{len(rows)} attacks, {breaches} got through")
    return bool(breaches)


if __name__ == "__main__":
    sys.exit(main())
