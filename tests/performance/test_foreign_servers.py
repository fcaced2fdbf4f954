"""llama.cpp's server and litellm's proxy, where they are installed: ``AGROTOOLS_TEST_SERVERS`` names their folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVERS = os.environ.get("AGROTOOLS_TEST_SERVERS")


@pytest.mark.slow
@pytest.mark.skipif(
    not SERVERS, reason="AGROTOOLS_TEST_SERVERS names no folder with xllamacpp and litellm"
)
def test_no_fault_of_foreign_servers_counts_against_the_model():
    command = [sys.executable, "performance/foreign_servers.py", "--servers", str(SERVERS)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
