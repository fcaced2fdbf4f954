#!/bin/sh
# Evaluates two baselines on a few samples of the embedded benchmark and compares them: sh examples/first_run.sh [DIR]
set -e
mkdir -p "${1:-example-runs}"
cd "${1:-example-runs}"
agrotools eval embedded --quick --model baseline:planner --model baseline:oracle --limit 4 --mode end-to-end
agrotools report runs/*
