"""Scores of runs, computed, stored and shown: what ``eval`` ends with and ``score`` does."""

from typing import Any

import orjson
import typer


def print_json(value: Any) -> None:
    """Indented JSON on standard output."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
