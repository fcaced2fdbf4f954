"""The storm: every fault of wire and tools at once, and whether each sample ended as it must.

    python benchmarks/fault_storm.py --samples 2000 --seed 1

Half of the samples run in no-tool, half in end-to-end with tool calls, against a server on this machine. Exits 1 if
any sample ended wrongly, is missing or was recorded twice, or if a connection or process is left.
"""

import argparse
import io
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.storm import Tally, storm

VERDICTS = ("right", "wrong", "missing", "doubled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=None, help="requests at once; left to the wire if not given")
    parser.add_argument("--progress", action="store_true", help="show the runs' own progress")
    options = parser.parse_args()
    clean = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AGROTOOLS_CACHE"] = str(Path(folder) / "cache")
        os.environ["OPENAI_API_KEY"] = "sk-storm"
        os.environ.pop("OPENAI_BASE_URL", None)
        for mode in ("no-tool", "end-to-end"):
            started = time.monotonic()
            progress = sys.stderr if options.progress else io.StringIO()
            count = options.samples // 2
            tally = storm(Path(folder), mode, count, options.seed, progress, concurrency=options.concurrency)
            _print(tally, mode, count, time.monotonic() - started)
            sys.stdout.flush()
            clean &= tally.clean
    sys.exit(not clean)


def _print(tally: Tally, mode: str, count: int, seconds: float) -> None:
    print(f"\n{mode}: {count} samples, {tally.requests} requests, {seconds:.0f} s")
    print(f"{'fault':34} {'must end as':12}" + "".join(f"{verdict:>9}" for verdict in VERDICTS))
    for (_, fault, expected), counts in sorted(tally.rows.items(), key=lambda row: (row[0][1].startswith("tool"), row)):
        print(f"{fault:34} {expected:12}" + "".join(f"{counts[verdict]:9}" for verdict in VERDICTS))
    print(f"connections left: {tally.connections_left}; processes left: {tally.processes_left}")
    print(f"told of an outage instead of their own fault: {tally.met_outage}")
    for why in tally.why[:20]:
        print(f"  {why}")


if __name__ == "__main__":
    main()
