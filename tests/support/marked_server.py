"""A tool server for tests whose processes are found among all of this machine, to see that none is left."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

_SCRIPT = Path(__file__).with_name("tool_server.py")


class MarkedServer:
    """The tools of ``tool_server.py``, with a word in its command line that nobody else has."""

    def __init__(self) -> None:
        self._mark = f"mark-{uuid4().hex}"
        self.address = f"{sys.executable} {_SCRIPT} {self._mark}"

    def processes(self) -> int:
        """Return the number of its processes, those of its isolation among them."""
        command = ["ps", "-eww", "-o", "args"]  # whole lines, whatever COLUMNS says
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
        return sum(self._mark in line for line in listed.stdout.splitlines())
