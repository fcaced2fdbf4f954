"""Code that tries to get out, to use up the machine, or to mislead whoever reads what it says."""

import tomllib
from pathlib import Path

from attacks import QUICK, Attack

from agrotools.sandbox.result import DEFAULT_LIMITS, Limits
from agrotools.sandbox.runners import machine


def read_attacks(name: str, limits: Limits = QUICK) -> tuple[Attack, ...]:
    """The attacks of a file for this machine. ``head`` of the file stands before the code of each."""
    table = tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return tuple(
        Attack(
            each["name"],
            table.get("head", "") + each["code"],
            tuple(each.get("ends", ("ok",))),
            Limits(**each["limits"]) if "limits" in each else limits,
        )
        for each in table["attack"]
        if each.get("machine") in (None, machine())
    )


ATTACKS = read_attacks("hostile_code.toml")
ATTACKS_ON_THE_CHANNEL = read_attacks("hostile_frames.toml", DEFAULT_LIMITS)
"""Against the process that reads what comes out: here the code speaks to it directly."""
