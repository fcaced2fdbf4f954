"""Runs untrusted Python code: isolated, limited, never in this process. See docs/sandbox.md."""

from agrotools.sandbox.probe import available_runners, select_runner
from agrotools.sandbox.result import (
    DEFAULT_LIMITS,
    Limits,
    SandboxArtifact,
    SandboxResult,
    SandboxTermination,
    SandboxUnavailable,
)
from agrotools.sandbox.running import run_code

__all__ = [
    "DEFAULT_LIMITS",
    "Limits",
    "SandboxArtifact",
    "SandboxResult",
    "SandboxTermination",
    "SandboxUnavailable",
    "available_runners",
    "run_code",
    "select_runner",
]
