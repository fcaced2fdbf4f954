"""``--json``: what every command prints for programs."""

from typing import Any

import typer


def print_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
