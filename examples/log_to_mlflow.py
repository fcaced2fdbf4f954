"""Log a run to MLflow: settings, metrics with intervals, and a table of samples.

    pip install mlflow pandas
    python examples/log_to_mlflow.py runs/my-run

MLFLOW_TRACKING_URI names a server or a database; by default MLflow writes to a local database.
"""

import sys

import mlflow

import agrotools as at

run = at.read_run(sys.argv[1])
mlflow.set_experiment(run.manifest.benchmark)
with mlflow.start_run(run_name=run.manifest.model):
    mlflow.log_params(
        {
            name: getattr(run.manifest, name)
            for name in ("model", "protocol", "seed", "benchmark_hash")
        }
    )
    for mode in run.manifest.modes:
        for name, score in run.mode_scores(mode).items():
            mlflow.log_metric(f"{mode}/{name}", score.value)
            if score.interval:
                mlflow.log_metrics(
                    {
                        f"{mode}/{name}.low": score.interval[0],
                        f"{mode}/{name}.high": score.interval[1],
                    }
                )
    mlflow.log_table(run.to_pandas(), "samples.json")
