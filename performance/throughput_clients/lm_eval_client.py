"""lm-eval's ``local-chat-completions`` on a task of its own: generate, extract the number, compare. No bootstrap.

python lm_eval_client.py questions|exam FOLDER URL CONCURRENCY SCRATCH
"""

import sys
from pathlib import Path

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from shared import conversations, report


def main() -> None:
    folder, url, concurrency, scratch = (
        Path(sys.argv[2]),
        sys.argv[3],
        int(sys.argv[4]),
        sys.argv[5],
    )
    opening = next(conversations(folder))
    system = opening[0]["content"] if len(opening) > 1 else None
    pattern, right = (r"答案：(\w)", "A") if sys.argv[1] == "exam" else (r"answer: (\d+)", "14")
    task = {
        "task": "throughput",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": str(folder / "requests.jsonl")},
        "test_split": "train",
        "output_type": "generate_until",
        "doc_to_text": "{{messages[-1].content}}",
        "doc_to_target": right,
        "generation_kwargs": {"until": [], "max_gen_toks": 4096, "temperature": 0.0},
        "filter_list": [
            {
                "name": "number",
                "filter": [
                    {"function": "regex", "regex_pattern": pattern},
                    {"function": "take_first"},
                ],
            }
        ],
        "metric_list": [{"metric": "exact_match"}],
    }
    results = simple_evaluate(
        model="local-chat-completions",
        model_args={
            "model": "mock",
            "base_url": f"{url}/chat/completions",
            "num_concurrent": concurrency,
        },
        tasks=[task],
        system_instruction=system,
        apply_chat_template=True,
        bootstrap_iters=0,
        log_samples=True,
    )
    assert results is not None
    samples = results.pop("samples")
    tracker = EvaluationTracker(output_path=scratch)
    tracker.save_results_aggregated(results=results, samples=samples)
    for name, rows in samples.items():
        tracker.save_results_samples(task_name=name, samples=rows)
    report(
        round(results["results"]["throughput"]["exact_match,number"] * len(samples["throughput"]))
    )


if __name__ == "__main__":
    main()
