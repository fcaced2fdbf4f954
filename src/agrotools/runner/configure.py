"""From a TOML file and options to configurations: every key known, every value checked, one for each model."""

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from agrotools.core import UsageError
from agrotools.plugin import plugin_of
from agrotools.runner.eval_config import EvalConfig
from agrotools.runner.recorded_tools import EVERY_TOOL, RECORDED

FIRST_RUN_MODELS = ("baseline:planner", "baseline:oracle")
"""What runs when no model is named: plans of similar questions put to use, and the best that the tools allow."""
FIRST_RUN_WITHOUT_TOOLS = ("baseline:prior", "baseline:random")
"""The same for questions without reference calls."""


def read_config(file: Path | None, options: Mapping[str, Any], models: Sequence[str]) -> list[EvalConfig]:
    """One configuration for each model; ``options`` win over the file.

    Raises:
        UsageError: the file cannot be read, a key or value is not known (with the closest key), or one run folder is
            asked for several models.
    """
    values = dict(_read_toml(file)) if file else {}
    named = values.pop("model", None)
    values.update(options)
    unknown = [key for key in values if key not in EvalConfig.model_fields]
    if unknown:
        close = get_close_matches(unknown[0], EvalConfig.model_fields, n=2)
        raise UsageError(
            f"unknown key {unknown[0]!r} in {file}",
            hint=f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"known: {', '.join(EvalConfig.model_fields)}",
        )
    if not isinstance(named, str | list | None):
        raise UsageError(
            f"model: should be a name or a list of names (got {named!r})", hint='e.g. model = "qwen2.5-vl"'
        )
    plugin = plugin_of(str(values.get("benchmark", "")))
    first_run = FIRST_RUN_WITHOUT_TOOLS if plugin and plugin.without_tools else FIRST_RUN_MODELS
    wanted = list(models) or ([named] if isinstance(named, str) else cast("list[str]", named) or [*first_run])
    if len(wanted) > 1 and values.get("out") is not None:
        raise UsageError(
            "--out names one run, but several models are asked for", hint="leave --out away, or give one --model"
        )
    try:
        return [EvalConfig.model_validate({**values, "model": model}) for model in wanted]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{where}: {first['msg']} (got {first['input']!r})", hint="see agrotools eval --help"
        ) from error


def tool_backends(given: Sequence[str]) -> dict[str, str]:
    """``TOOL=KIND`` options as a table; ``recorded`` alone is for every tool.

    Raises:
        UsageError: not of that form.
    """
    by_tool = [f"{EVERY_TOOL}={text}" if text == RECORDED else text for text in given]
    return _pairs(by_tool, "--backend", "TOOL=KIND, or recorded for all tools", "agrotools tools list")


def benchmark_options(given: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` options as a table.

    Raises:
        UsageError: not of that form.
    """
    return _pairs(given, "--option", "NAME=VALUE", "e.g. --option shots=5")


def _pairs(given: Sequence[str], option: str, form: str, hint: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    wrong = [text for text, (name, _, value) in zip(given, pairs, strict=True) if not name or not value]
    if wrong:
        raise UsageError(f"{option} {wrong[0]!r} is not of the form {form}", hint=hint)
    return {name: value for name, _, value in pairs}


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the configuration {file}: {error}", hint="it must be a TOML file") from error
