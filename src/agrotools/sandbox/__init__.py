"""Runs untrusted Python code: isolated, limited, never in this process. See docs/sandbox.md."""

RUNNER_VARIABLE = "AGROTOOLS_SANDBOX"
"""Environment variable: the runner to use, by name."""
WORKERS_VARIABLE = "AGROTOOLS_SANDBOX_WORKERS"
"""Environment variable: how many workers are kept, and so how many jobs run at once. Default: one for each core."""
