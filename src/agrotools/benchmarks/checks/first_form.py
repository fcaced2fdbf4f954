"""What a benchmark folder of the first form lacks. It can be read and run: none of this is a fault."""

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from agrotools.formats.folder import HEADER_FILE, SAMPLES_FILE


def first_form_remarks(root: Path) -> list[str]:
    """Remarks on a folder whose lines and header can be read; what cannot is passed over, as a fault tells of it."""
    remarks: list[str] = []
    of_first_form = 0
    with suppress(OSError), (root / SAMPLES_FILE).open("rb") as file:
        for line in file:
            with suppress(orjson.JSONDecodeError):
                of_first_form += _has_first_form(orjson.loads(line)) if line.strip() else 0
    if of_first_form:
        remarks.append(
            f"{of_first_form} samples have options in the first form (distractors and no choices): their prompts name "
            "what it holds, and aliases are known of the right option alone; build the benchmark again for the present"
        )
    with suppress(OSError, ValueError):
        if not tomllib.loads((root / HEADER_FILE).read_text("utf-8")).get("canary"):
            remarks.append("it has no canary: a leak of it into training data cannot be found")
    return remarks


def _has_first_form(sample: Any) -> bool:
    slots = sample.get("answer") if isinstance(sample, dict) else None
    return any(
        isinstance(slot, dict) and slot.get("type") == "exact" and (slot.get("distractors") or _listed(slot))
        for slot in (slots if isinstance(slots, list) else ())
    )


def _listed(slot: dict[str, Any]) -> bool:
    return bool(slot.get("aliases")) and isinstance(slot["aliases"], list)
