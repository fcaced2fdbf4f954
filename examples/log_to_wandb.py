"""Log a run to Weights & Biases: settings, metrics with intervals, and a table of samples.

    pip install wandb pandas
    python examples/log_to_wandb.py runs/my-run

It needs an account, or WANDB_MODE=offline; only the latter is tested.
"""

import sys

import wandb

import agrotools as at

run = at.read_run(sys.argv[1])
settings = run.manifest.model_dump(mode="json", exclude={"sample_ids"})
with wandb.init(
    project=f"agrotools-{run.manifest.benchmark}", name=run.manifest.model, config=settings
) as logged:
    for mode in run.manifest.modes:
        for name, score in run.mode_scores(mode).items():
            logged.summary[f"{mode}/{name}"] = score.value
            if score.interval:
                logged.summary[f"{mode}/{name} 95 %"] = list(score.interval)
    logged.log({"samples": wandb.Table(dataframe=run.to_pandas())})
