"""Arguments and options of commands: signatures have types and defaults, ``options.toml`` all words about them."""

import inspect
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer
from typer.core import TyperGroup

from agrotools.cli.reading import answers_in_hint

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

    from agrotools.scoring.contracts import TextComparisons

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True)
class OptionTable:
    """Values of the options of ``eval_options.toml`` by name; the configuration has their types and defaults."""

    values: dict[str, Any]

    @staticmethod
    def parameters() -> list[inspect.Parameter]:
        """Return the options as parameters of a function."""
        table = tomllib.loads(
            Path(__file__).with_name("eval_options.toml").read_text(encoding="utf-8")
        )
        return [
            _parameter(name, panel, **row)
            for panel, rows in table.items()
            for name, row in rows.items()
        ]


def _parameter(
    name: str, panel: str, *, flags: tuple[str, ...] = (), repeatable: bool = False, **more: Any
) -> inspect.Parameter:
    """Return an option. Those that are no key of the configuration are numbers, if they have a ``min``, or flags."""
    from agrotools.runner.config import OPTIONS

    field = OPTIONS.get(name)
    if field is None and "min" not in more:
        annotation, default = (
            Annotated[bool, typer.Option(*flags, rich_help_panel=panel, **more)],
            False,
        )
    else:
        said = field and (field.annotation, *get_args(field.annotation))
        kind = (
            next((each for each in (bool, int, float, Path) if each in said), str) if said else int
        )
        if field and field.default and kind is not bool:
            more.setdefault(
                "show_default", f"{field.default:g}" if kind is float else str(field.default)
            )
        option = typer.Option(*flags, rich_help_panel=panel, **more)
        annotation, default = (
            Annotated[list[kind] | None if repeatable else kind | None, option],
            None,
        )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


@cache
def _words() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))


def _described(
    section: str, parameter: inspect.Parameter, panel: str | None = None
) -> inspect.Parameter:
    """Return a parameter with its description: of this command, else of its group, else of every command."""
    name, said = parameter.name, dict[str, Any]()
    for each in ("every", section.split()[0], section):
        entry = _words().get(each, {}).get(name, {})
        said |= {"help": entry} if isinstance(entry, str) else entry
    flags = said.pop("flags", ())
    panel = said.pop("panel", panel)
    if said.pop("argument", False):
        info = typer.Argument(**said)
    else:
        if parameter.annotation is bool and not parameter.default:
            flags = flags or [f"--{name.replace('_', '-')}"]  # else typer adds --no-NAME
        info = typer.Option(*flags, rich_help_panel=panel, **said)
    return parameter.replace(annotation=Annotated[parameter.annotation, info])


def documented(words: str, command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters are described by the table of ``words``, as the user types it.

    It takes the fields of its dataclass parameters as options, and passes on the dataclasses. The help shows the
    options of a group under its ``PANEL``, those of :class:`OptionTable` as their table says.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        group = parameter.annotation
        if group is OptionTable or (isinstance(group, type) and is_dataclass(group)):
            fields = inspect.signature(group).parameters.values()
            options = (
                OptionTable.parameters()
                if group is OptionTable
                else [
                    _described(group.__name__, each, getattr(group, "PANEL", None))
                    for each in fields
                ]
            )
            groups[name] = group, [each.name for each in options]
            parameters += options
        else:
            parameters.append(parameter if group is typer.Context else _described(words, parameter))

    @wraps(command)
    def with_groups(**values: Any) -> None:
        names = frozenset(values)
        for name, (group, fields) in groups.items():
            chosen = {field: values.pop(field) for field in fields}
            values[name] = group(chosen) if group is OptionTable else group(**chosen)
        with answers_in_hint(names):
            command(**values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([each.replace(kind=keyword) for each in parameters])
    with_groups.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
    with_groups.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_groups


class Commands(TyperGroup):
    """Group whose help lists its commands with the whole first sentence of each."""

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, re.split(r"(?<=[.?])\s", (each and each.help) or "")[0])
                    for name, each in commands.items()
                ]
            )


def command_group(help: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(cls=Commands, help=help, no_args_is_help=True, rich_markup_mode=None)


def sub_command(app: typer.Typer, words: str, **settings: Any) -> Callable[[Command], Command]:
    """Add a function to ``app`` as the command that a user calls by ``words``."""

    def added(function: Command) -> Command:
        app.command(words.split()[-1], **settings)(documented(words, function))
        return function

    return added


@dataclass(frozen=True)
class TextOptions:
    """Options of text comparisons."""

    embedder: str | None = None
    embedder_path: Path | None = None

    def comparisons(self) -> "TextComparisons":
        """Return the selected text comparisons."""
        from agrotools.scoring.contracts import TextComparisons
        from agrotools.scoring.embedders import open_embedder

        is_given = self.embedder or self.embedder_path
        embedder = open_embedder(self.embedder, self.embedder_path) if is_given else None
        return TextComparisons(embedder)
