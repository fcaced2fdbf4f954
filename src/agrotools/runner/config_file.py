"""Options of an evaluation as a user gives them: a TOML file, options of the command, or both.

Out goes one :class:`agrotools.runner.config.EvalConfig` for each model and dose of faults. Options of the command
override the file. Every key is known or refused, with the closest one named.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from agrotools.core import UsageError, plain_message
from agrotools.core.files import read_toml
from agrotools.core.installed import plugin_of
from agrotools.core.texts import suggestion
from agrotools.formats.benchmark import facts_of
from agrotools.loading import Benchmark
from agrotools.models.endpoint import check_model_name
from agrotools.runner.config import JUDGE_KEYS, OPTIONS, EvalConfig, JudgeConfig
from agrotools.runner.plan import EVERY_TOOL, RECORDED

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

FIRST_RUN_MODELS = ("baseline:planner", "baseline:oracle", "baseline:guess")
"""Default models: plans of similar questions, the upper bound that the tools allow, and guesses from the question."""
FIRST_RUN_WITHOUT_TOOLS = ("baseline:constant", "baseline:random")
"""Default models for questions without reference calls."""


class ConfigFile(NamedTuple):
    """Content of a configuration file. It is read once, because it may be a pipe of the shell."""

    path: Path
    values: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "ConfigFile":
        """Read a configuration file; UsageError as for :func:`read_toml`."""
        return cls(path, read_toml(path))


def read_config(
    file: ConfigFile | None, options: Mapping[str, Any], models: Sequence[str]
) -> list[EvalConfig]:
    """Return one configuration for each model and dose of faults; ``options`` override the file.

    Keys about judges are left to :func:`read_judges`.

    Raises:
        UsageError: the file cannot be read, a key or value is invalid (the closest key is suggested), or ``out`` is
            given for several models.
    """
    in_file: Mapping[str, Any] = file.values if file else {}
    values = {key: value for key, value in in_file.items() if key not in JUDGE_KEYS}
    model_of_file = values.pop("model", None)
    options_of_file = values.get("options")
    values.update(options)
    if isinstance(options_of_file, dict) and "options" in options:
        # One more option of the benchmark, such as the answer to a question, leaves those of the file as they are.
        values["options"] = {**options_of_file, **options["options"]}
    check_keys(values, OPTIONS, str(file.path) if file else "", options)
    named = _names_in_file(model_of_file)
    names = list(models) or named or _default_models(str(values.get("benchmark", "")))
    for name in names:
        check_model_name(str(name))
    doses = _given_doses(values.pop("faults", ""))
    if values.get("out") is not None:
        _check_one_run(len(names), len(doses))
    if values.get("name") and len(names) > 1:
        raise UsageError(
            "--name names one model, but several are asked for",
            hint="omit --name, or give one --model",
        )
    configs: list[EvalConfig] = []
    try:
        for faults in doses:
            for name in names:
                configs.append(EvalConfig.of(**{**values, "faults": faults, "model": name}))
    except ValidationError as error:
        first = error.errors()[0]
        _part, *option = first["loc"]
        raise _invalid_value(first, option) from error
    return configs


def read_judges(file: ConfigFile | None, judges: Sequence[str] = ()) -> JudgeConfig:
    """Return the judges and their options; ``judges`` override those of the file.

    Other keys of a configuration file may stand beside them.

    Raises:
        UsageError: the file cannot be read, a key or value is invalid, or options are given without a judge.
    """
    in_file: Mapping[str, Any] = file.values if file else {}
    path = str(file.path) if file else ""
    check_keys(in_file, [*OPTIONS, *JUDGE_KEYS], path)
    values = {key: value for key, value in in_file.items() if key in JUDGE_KEYS}
    names = [*judges] or _names_in_file(values.get("judge"), "judge")
    if values and not names:
        raise UsageError(
            f"{path} has {next(iter(values))}, but no judge is named",
            hint='add --judge MODEL, or judge = "MODEL" to the file',
        )
    try:
        return JudgeConfig.model_validate({**values, "judge": tuple(names)})
    except ValidationError as error:
        raise _invalid_value(error.errors()[0], error.errors()[0]["loc"]) from error


def _names_in_file(value: Any, key: str = "model") -> list[str]:
    """Return the models that a file names, one or several; UsageError if its value is neither."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise UsageError(
            f"{key}: should be a name or a list of names (got {value!r})",
            hint=f'e.g. {key} = "qwen2.5-vl"',
        )
    return cast("list[str]", value)


def _default_models(benchmark: str) -> list[str]:
    plugin = plugin_of(benchmark)
    return [*(FIRST_RUN_WITHOUT_TOOLS if plugin and plugin.without_tools else FIRST_RUN_MODELS)]


def _check_one_run(n_models: int, n_doses: int) -> None:
    """Raise a UsageError if several models or doses are asked for, which ``--out`` cannot name."""
    if n_models * n_doses <= 1:
        return
    if n_models > 1:
        several, option = "models", "--model"
    else:
        several, option = "doses", "--faults"
    raise UsageError(
        f"--out names one run, but several {several} are asked for",
        hint=f"omit --out, or give one {option}",
    )


def _invalid_value(first: "ErrorDetails", option: Sequence[int | str]) -> UsageError:
    """Return a fault of a configuration in the words of its options."""
    where = ".".join(map(str, option))
    wrong = (
        plain_message(first)
        .replace("Input should", "should")
        .replace("greater than or equal to", "at least")
        .replace("less than or equal to", "at most")
    )
    return UsageError(
        f"{where}: {wrong} (got {first['input']!r})", hint="see agrotools eval --help"
    )


def _given_doses(given: Any) -> list[Any]:
    """Return the doses of ``--faults``, a text for each run; UsageError if one is empty."""
    several = cast("list[Any]", given) if isinstance(given, list) else [given]
    are_texts = all(str(each).strip() for each in several)
    if isinstance(given, list) and not (several and are_texts):
        raise UsageError("--faults is empty", hint="omit it, or --faults none for a run without")
    return several


def with_default_models(
    configs: Sequence[EvalConfig],
    file: ConfigFile | None,
    models: Sequence[str],
    benchmark: Benchmark,
) -> list[EvalConfig]:
    """Return the configurations, with the default models for questions without reference calls if it has such ones.

    Whether questions have reference calls, which other default models make, may be known only when they are loaded.
    ``file``, ``models``: as of :func:`read_config`; models that they name stay.
    """
    is_named = bool(models) or (file is not None and "model" in file.values)
    if is_named or all(facts_of(benchmark.samples).reference):
        return [*configs]
    first = [each for each in configs if each.model.name == configs[0].model.name]
    return [each.with_options(model=model) for each in first for model in FIRST_RUN_WITHOUT_TOOLS]


def tool_backends(options: Sequence[str]) -> dict[str, str]:
    """Return ``TOOL=KIND`` options as a table (UsageError: another form); ``recorded`` alone applies to all tools."""
    by_tool = [f"{EVERY_TOOL}={text}" if text == RECORDED else text for text in options]
    return _pairs(
        by_tool, "--backend", "TOOL=KIND, or recorded for all tools", "agrotools tools list"
    )


def benchmark_options(options: Sequence[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` options as a table; UsageError if one has another form."""
    return _pairs(options, "--option", "NAME=VALUE", "e.g. --option shots=5")


def _pairs(texts: Sequence[str], option: str, form: str, hint: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = [
        text for text, (name, _, value) in zip(texts, pairs, strict=True) if not name or not value
    ]
    if wrong:
        raise UsageError(f"{option} {wrong[0]!r} is not of the form {form}", hint=hint)
    return {name: value for name, _, value in pairs}


def check_keys(
    values: Iterable[str], known: Collection[str], file: str, options: Iterable[str] = ()
) -> None:
    """Check the keys of a configuration.

    Args:
        file: where the keys come from; empty for options.
        options: keys that come from options although there is a file.

    Raises:
        UsageError: a key is not known; the closest ones are suggested.
    """
    for key in values:
        if key not in known:
            fault = (
                f"unknown key {key!r} in {file}"
                if file and key not in options
                else f"unknown option {key!r}"
            )
            raise UsageError(fault, hint=suggestion(key, known))
