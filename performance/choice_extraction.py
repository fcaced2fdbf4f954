"""How often the options that a reply chooses are read as a person reads them: by LexEval's rule and by ours.

    python performance/choice_extraction.py [--seed 20] [--made 460] [--errors] [--json]

Replies, and what they choose, come from ``tests/scoring/choices``: labelled by hand before the reader was written,
labelled by hand later (before the reader read them), and made to mislead it. ``right``: the letters are those of the
label (none where the reply gives none). ``wrong``: letters that the label does not have; ``unread``: none where there
is an answer. LexEval's letters are compared as it does, as a string in their order. Time is the best of five readings.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "scoring" / "choices"
sys.path.insert(0, str(FOLDER))

from hard_replies import hard_replies  # noqa: E402  # pyright: ignore[reportMissingImports]

from agrotools.benchmarks.agrieval import lexeval  # noqa: E402
from agrotools.scoring.choices import read_choices  # noqa: E402

Row = dict[str, Any]


def ours(row: Row) -> str:
    return "".join(read_choices(row["reply"], row["options"], row["kind"]).letters)


def theirs(row: Row) -> str:
    return lexeval.extract(row["reply"])


RULES: dict[str, Callable[[Row], str]] = {"LexEval": theirs, "agrotools": ours}


def read_rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def outcome(read: str, gold: list[str] | None) -> str:
    wanted = "".join(gold or [])
    return "right" if read == wanted else "wrong" if read else "unread"


def tallied(rows: Iterable[Row]) -> Row:
    """Counts of each outcome for both rules, and the replies that ours does not read rightly."""
    counts: Row = {"replies": 0, "errors": []}
    counts |= {rule: {"right": 0, "wrong": 0, "unread": 0} for rule in RULES}
    for row in rows:
        counts["replies"] += 1
        for rule, reading in RULES.items():
            counts[rule][outcome(reading(row), row["gold"])] += 1
        if outcome(ours(row), row["gold"]) != "right":
            counts["errors"].append({"reply": row["reply"], "gold": row["gold"], "read": ours(row)})
    return counts


def seconds(rows: list[Row], reading: Callable[[Row], str]) -> float:
    """Mean over the replies of the best of five readings."""
    total = 0.0
    for row in rows:
        taken: list[float] = []
        for _ in range(5):
            started = time.perf_counter()
            reading(row)
            taken.append(time.perf_counter() - started)
        total += min(taken)
    return total / len(rows)


def measured(rows: list[Row]) -> Row:
    classes = dict.fromkeys(row["class"] for row in rows)
    return {
        "all": tallied(rows),
        "classes": {name: tallied(row for row in rows if row["class"] == name) for name in classes},
        "mean_characters": sum(len(row["reply"]) for row in rows) / len(rows),
        "microseconds": {rule: 1e6 * seconds(rows, reading) for rule, reading in RULES.items()},
    }


def table(name: str, result: Row) -> list[str]:
    lines = ["", name, f"{'':34}{'':>8}" + "".join(f"{rule:>30}" for rule in RULES)]
    lines.append(f"{'class':34}{'replies':>8}" + f"{'right':>16}{'wrong':>7}{'unread':>7}" * len(RULES))
    for label, counts in {**result["classes"], "all": result["all"]}.items():
        cells = [f"{label:34}{counts['replies']:>8}"]
        for rule in RULES:
            got = counts[rule]
            share = f"{got['right']} ({100 * got['right'] / counts['replies']:.1f} %)"
            cells.append(f"{share:>16}{got['wrong']:>7}{got['unread']:>7}")
        lines.append("".join(cells))
    times = ", ".join(f"{rule} {value:.0f}" for rule, value in result["microseconds"].items())
    return [*lines, f"microseconds for each reply of {result['mean_characters']:.0f} characters: {times}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=20, help="of the replies that are made")
    parser.add_argument("--made", type=int, default=460, help="how many are made")
    parser.add_argument("--errors", action="store_true", help="print the replies that are not read rightly")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    options = parser.parse_args()
    halves = {
        "labelled by hand before the reader": read_rows("answers_by_hand.jsonl"),
        "labelled by hand later": read_rows("answers_by_hand_later.jsonl"),
        f"made to mislead (seed {options.seed})": hard_replies(options.seed, options.made),
    }
    results = {name: measured(rows) for name, rows in halves.items()}
    if options.json:
        print(json.dumps(results, ensure_ascii=False))
        return
    for name, result in results.items():
        print("\n".join(table(name, result)))
        if options.errors:
            print("\n".join(json.dumps(error, ensure_ascii=False) for error in result["all"]["errors"]))


if __name__ == "__main__":
    main()
