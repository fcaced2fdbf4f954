"""Groups of options that several commands share, and their expansion in the signature of a command."""

import inspect
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

    from agrotools.plugin import TextComparisons

SIMILARITY = "similarity"


@dataclass(frozen=True)
class OptionTable:
    """Values of the options of ``eval_options.toml`` by name. :class:`EvalConfig` has their types and defaults."""

    values: dict[str, Any]

    @staticmethod
    def parameters() -> list[inspect.Parameter]:
        """Return the options as parameters of a function."""
        table = tomllib.loads(Path(__file__).with_name("eval_options.toml").read_text(encoding="utf-8"))
        return [_parameter(name, panel, **row) for panel, rows in table.items() for name, row in rows.items()]


def _parameter(
    name: str, panel: str, *, flags: tuple[str, ...] = (), repeatable: bool = False, **more: Any
) -> inspect.Parameter:
    """Return an option. Those that are no key of the configuration are numbers, if they have a ``min``, or flags."""
    from agrotools.runner.config import EvalConfig

    field = EvalConfig.model_fields.get(name)
    if field is None and "min" not in more:
        annotation, default = Annotated[bool, typer.Option(*flags, rich_help_panel=panel, **more)], False
    else:
        said = field and (field.annotation, *get_args(field.annotation))
        kind = next((each for each in (bool, int, float, Path) if each in said), str) if said else int
        if field and field.default and kind is not bool:
            more.setdefault("show_default", f"{field.default:g}" if kind is float else str(field.default))
        option = typer.Option(*flags, rich_help_panel=panel, **more)
        annotation, default = Annotated[list[kind] | None if repeatable else kind | None, option], None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the fields of its dataclass parameters as options, and passes on the dataclasses.

    The help shows the options of a group under its ``PANEL``, those of :class:`OptionTable` as their table says.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        group = parameter.annotation
        if group is OptionTable:
            options = OptionTable.parameters()
            groups[name] = OptionTable, [each.name for each in options]
            parameters += options
        elif isinstance(group, type) and is_dataclass(group):
            fields = inspect.signature(group).parameters.values()
            for field in fields:
                field.annotation.__metadata__[0].rich_help_panel = getattr(group, "PANEL", None)
            groups[name] = group, [field.name for field in fields]
            parameters += fields
        else:
            parameters.append(parameter)

    @wraps(command)
    def with_groups(**values: Any) -> None:
        for name, (group, fields) in groups.items():
            chosen = {field: values.pop(field) for field in fields}
            values[name] = group(chosen) if group is OptionTable else group(**chosen)
        command(**values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    with_groups.__signature__ = inspect.Signature([each.replace(kind=keyword) for each in parameters])  # pyright: ignore[reportAttributeAccessIssue]
    with_groups.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_groups


class Commands(TyperGroup):
    """Group whose help lists its commands with the whole first sentence of each."""

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, re.split(r"(?<=[.?])\s", (each and each.help) or "")[0]) for name, each in commands.items()]
            )


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataRoot = Annotated[Path | None, typer.Option(help="Folder of the benchmark, if it was moved.")]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Port to listen on. Default: any free port.")]
AllowInvalid = Annotated[
    bool, typer.Option("--allow-invalid", help="Report scores even if more than 1 % of samples are invalid.")
]
Details = Annotated[
    bool, typer.Option("--details", help="Also show scores by task and answer type, and statistics of the run.")
]


@dataclass(frozen=True)
class TextOptions:
    """Options of text comparisons."""

    PANEL: ClassVar = "Comparisons of texts"

    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Additional text metric: similarity (all-MiniLM-L6-v2, extra embed) or rouge-l-lexeval (extra zh).",
        ),
    ] = None
    embedder: Annotated[
        str | None, typer.Option("--embedder", help="Embedding model for --with similarity, e.g. all-mpnet-base-v2.")
    ] = None
    embedder_path: Annotated[
        Path | None, typer.Option(help="Folder of the embedding model's files; nothing is downloaded.")
    ] = None

    def comparisons(self) -> "TextComparisons":
        """Return the selected text comparisons.

        Raises:
            UsageError: a metric is unknown, or a package that it needs is not installed.
        """
        from agrotools.core import UsageError
        from agrotools.plugin import TextComparisons, plugins
        from agrotools.scoring.embedders import open_embedder

        extras = frozenset(self.extra or ())
        if extras - {SIMILARITY}:
            known = [SIMILARITY, *(name for plugin in plugins() for name in plugin.scoring.comparisons)]
            if unknown := sorted(extras.difference(known)):
                hint = f"known: {', '.join(dict.fromkeys(known))}"
                raise UsageError(f"--with {unknown[0]}: no such metric", hint=hint)
        needs_embedder = self.embedder or self.embedder_path or SIMILARITY in extras
        embedder = open_embedder(self.embedder, self.embedder_path) if needs_embedder else None
        return TextComparisons(extras - {SIMILARITY}, embedder)


@dataclass(frozen=True)
class JudgeOptions:
    """Options of judges."""

    PANEL: ClassVar = "Judges"

    judge: Annotated[
        list[str] | None,
        typer.Option(help="Model that grades open answers (repeatable); its replies are stored with the run."),
    ] = None
    read_prose: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Model that copies the values of answers in words into the form: metric fas_read."
        ),
    ] = None
    judge_base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint of the judges.")] = None
    judge_api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with their key.", show_default="OPENAI_API_KEY")
    ] = None
    judge_votes: Annotated[int, typer.Option(min=1, max=25, help="Number of grades per judge and answer.")] = 1
    judge_calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|shipped",
            help="Also let the judges grade answers with known grades, and report their agreement.",
        ),
    ] = None
    judge_rubrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file with rubrics for the judges, instead of the built-in ones."),
    ] = None
    judge_budget: Annotated[float | None, typer.Option(help="Maximum total cost of the judges of a run in USD.")] = None
    judge_price: Annotated[str | None, typer.Option(help="Price of a judge, IN/OUT in USD per million tokens.")] = None
    judge_concurrency: Annotated[
        int | None, typer.Option(min=1, help="Concurrent requests to a judge.", show_default="adapts to the endpoint")
    ] = None
