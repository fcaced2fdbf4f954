"""Packages that an interpreter finds as if pip had installed them."""

import os
import tomllib
from pathlib import Path

import agrotools


def installed(project: Path, source: Path, cache: Path) -> dict[str, str]:
    """Return the environment in which the package of ``project`` is installed, with its modules in ``source``."""
    described = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    (info := source / f"{described['name']}-{described['version']}.dist-info").mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n"
    )
    lines = [
        line
        for group, names in described["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(source), str(Path(agrotools.__file__).parents[1])])
    return {**os.environ, "PYTHONPATH": path, "AGROTOOLS_CACHE": str(cache), "COLUMNS": "120"}
