"""Which file of a sample a path in a call stands for, where a published benchmark names its files by paths.

Nothing is looked up where such a path leads: it is compared with the listed files and with the artifacts of earlier
calls, by its end alone.
"""

import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from agrotools.core import SampleFile


def file_meant(name: str, files: Sequence[SampleFile], artifacts: Path) -> str | None:
    """The name of the file or artifact that ``name`` is, or whose path ends as it does; None where there is not one."""
    path = Path(name)
    if str(path) in {file.name for file in files}:
        return str(path)
    if "\0" in name or ".." in path.parts or "\\" in name or name.startswith("~") or not path.name:
        return None
    alike = {file.name: file for file in files if path.name in (file.name, Path(file.path).name)}
    if not alike:
        return path.name if path.name[0] != "." and os.path.lexists(artifacts / path.name) else None
    # Of two files called alike in two folders, the one is meant whose folder is named too.
    common = {name: _common_ending(path, Path(file.path)) for name, file in alike.items()}
    best = [name for name, count in common.items() if count == max(common.values())]
    return best[0] if len(best) == 1 else None


def _common_ending(one: Path, other: Path) -> int:
    """How many parts two paths have in common at their ends."""
    pairs = zip(reversed(one.parts), reversed(other.parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
