"""Nothing that only Linux has is needed to import what runs tools and evaluations."""

import subprocess
import sys

_WITHOUT_LINUX = """
import os
for name in dir(os):
    if name.startswith(("sched_", "SCHED_", "memfd", "MFD_", "pidfd", "eventfd", "O_PATH", "O_TMPFILE", "getrandom")):
        delattr(os, name)
import agrotools.cli.main, agrotools.runner.evaluate, agrotools.sandbox
import agrotools.tools.execution, agrotools.tools.worker
from agrotools.tools import get_tool, tool_names
for name in tool_names():
    get_tool(name)
"""


def test_tools_import_without_what_only_linux_has():
    run = subprocess.run([sys.executable, "-c", _WITHOUT_LINUX], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
