"""Judges as a configuration file names them."""

import json
from pathlib import Path


def judged_by(folder: Path, *names: str, at: str, **options: str | float) -> list[str]:
    """Return the words that let models at an address judge. ``options``: further keys of the file in ``folder``."""
    values = {"judge": [*names], "judge_base_url": at, **options}
    # A text, a number or a list of texts in JSON is one in TOML, too.
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    file = folder / "judges.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return ["--config", str(file)]
