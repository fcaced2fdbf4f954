"""``agrotools eval`` as anyone runs it: records on, tools in worker processes, scores and report at the end.

python agrotools_client.py WORKLOAD FOLDER URL CONCURRENCY SCRATCH     becomes that command
python agrotools_client.py count SCRATCH                               says how many answers it scored as right
"""

import json
import os
import sys
from pathlib import Path


def run(workload: str, folder: str, url: str, concurrency: str, scratch: str) -> None:
    mode = (
        ["--mode", "end-to-end", "--protocol", "tool-calling"]
        if workload == "agents"
        else ["--mode", "no-tool"]
    )
    script = Path(sys.executable).with_name("agrotools")
    benchmark = (
        ["agrieval", "--data-root", folder, "--option", "part=choice"]
        if workload == "exam"
        else [folder]
    )
    command = [
        sys.executable,
        str(script),
        "eval",
        *benchmark,
        "--model",
        "mock",
        "--base-url",
        url,
        *mode,
    ]
    os.execv(sys.executable, [*command, "--concurrency", concurrency, "--out", f"{scratch}/run"])


def count(scratch: str) -> None:
    """A sample counts if it has one record, its calls (if any) returned 14, and its answer has the full score."""
    with Path(scratch, "run", "records.jsonl").open("rb") as lines:
        records = [json.loads(line) for line in lines]
    asked = [record["sample"]["id"] for record in records]
    if len(set(asked)) != len(asked):
        sys.exit("a sample has two records")
    for record in records:
        for step in record["trajectory"]["steps"]:
            if step["kind"] == "call" and (step["observation"]["result"] or {}).get("value") != 14:
                sys.exit(f"a call went wrong: {json.dumps(step)[:2000]}")
    rows = json.loads(Path(scratch, "run", "scores.json").read_bytes())["scores"]
    right = {row["sample_id"] for row in rows if row["slot"] == "answer" and row["value"] == 1}
    print(json.dumps({"right": len(right & set(asked))}))


if __name__ == "__main__":
    count(sys.argv[2]) if sys.argv[1] == "count" else run(*sys.argv[1:])
