"""Running the command line in this process, and comparing what it wrote with stored values."""

import gzip
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agrotools.cli.main import main

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
REFRESH = os.environ.get("AGROTOOLS_REFRESH_GOLDEN", "")
"""Name of the golden value to store anew, or ``all``; see README.md."""
_SHOWN = 20
_TOLERANCE = 5e-6
"""Results of tools have six digits; the last one of a net's probability depends on the processor."""


def agrotools(patch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit code of ``agrotools ARGUMENTS``, run in this process in this folder."""
    patch.chdir(HERE)
    patch.setattr(sys, "argv", ["agrotools", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def check(name: str, actual: Any) -> None:
    """Compare ``actual`` with the stored value ``name``, or store it where a refresh was asked for.

    Floats agree but for the sixth digit, everything else exactly. Stored as ``expected/NAME.json``, packed above 20 kB.
    """
    plain, packed = EXPECTED / f"{name}.json", EXPECTED / f"{name}.json.gz"
    if REFRESH in (name, "all"):
        text = json.dumps(actual, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        plain.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
        if len(text) > 20_000:
            packed.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            plain.write_text(text, encoding="utf-8")
        return
    stored = gzip.decompress(packed.read_bytes()) if packed.is_file() else plain.read_bytes()
    found = differences(json.loads(stored), json.loads(json.dumps(actual)))
    if found:
        more = f"\n... and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        lines = "\n".join(found[:_SHOWN])
        pytest.fail(
            f"{name} differs; on purpose? AGROTOOLS_REFRESH_GOLDEN={name}\n{lines}{more}",
            pytrace=False,
        )


def differences(expected: Any, actual: Any, at: str = "") -> list[str]:
    """One line for each place at which two JSON values differ.

    A key may be left out where its value was null: benchmark plug-ins have entries in the scores of runs that they
    counted something of, and in no others.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        lines: list[str] = []
        for key in sorted({*expected, *actual}):
            if key not in actual and expected[key] is None:
                continue
            if key not in actual:
                lines.append(f"{at}.{key}: is gone, was {_short(expected[key])}")
            elif key not in expected:
                lines.append(f"{at}.{key}: is new: {_short(actual[key])}")
            else:
                lines += differences(expected[key], actual[key], f"{at}.{key}")
        return lines
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [
            line
            for place, (one, other) in pairs
            for line in differences(one, other, f"{at}[{place}]")
        ]
    if type(expected) is type(actual) is float:
        same = math.isclose(expected, actual, rel_tol=_TOLERANCE, abs_tol=1e-12)
    else:
        same = type(expected) is type(actual) and expected == actual
    return [] if same else [f"{at}: was {_short(expected)}, is {_short(actual)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}..."
