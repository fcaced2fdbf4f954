"""``--json``: what every command prints for programs."""

from typing import Any

import typer


def print_json(value: Any) -> None:
    """Indented JSON on standard output. A half of a surrogate pair, which no encoding has, is written as its escape."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"))
