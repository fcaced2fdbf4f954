"""Execution of untrusted Python code in isolated processes with resource limits. See docs/sandbox.md."""

RUNNER_VARIABLE = "AGROTOOLS_SANDBOX"
"""Environment variable with the name of the runner to use."""
WORKERS_VARIABLE = "AGROTOOLS_SANDBOX_WORKERS"
"""Environment variable with the number of workers, which is also that of concurrent jobs. Default: one per core."""
