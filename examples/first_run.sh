#!/bin/sh
# Evaluates two baselines on a few samples of the embedded benchmark: sh examples/first_run.sh [DIR]
set -e
dir=${1:-example-runs}
agrotools eval embedded --model baseline:planner --limit 4 --mode end-to-end --out "$dir/planner"
agrotools eval embedded --model baseline:oracle --limit 4 --mode end-to-end --out "$dir/oracle"
agrotools score "$dir/oracle" "$dir/planner"
agrotools report "$dir/oracle" "$dir/planner" --out "$dir/report.html"
