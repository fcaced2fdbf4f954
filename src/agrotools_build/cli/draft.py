"""``agrotools draft``: a model writes questions, wordings or wrong options; code checks them for people to review."""

import sys
from contextlib import ExitStack, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import typer

from agrotools.cli.output import (
    command_line,
    count_text,
    print_json,
    stop_message,
    terminal_progress,
)
from agrotools.exit_codes import NOT_DONE, code_of

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark
    from agrotools.models import Endpoint, ModelSettings, PricedModel
    from agrotools.models.local_server import LocalServer
    from agrotools_build.drafting.working import Drafted, Drafting

_TABLES = (".csv", ".tsv", ".xlsx", ".xlsm")
"""Endings of tables that may lie beside the photographs; annotations have many files, and are built first."""
_SERVED_TIMEOUT_S = 3600.0
"""Time limit of a request to a model on this machine, where a reply may take minutes."""


@dataclass(frozen=True)
class AskedModel:
    """Options of the model: its address, key and server, and the settings of requests."""

    PANEL = "Model and endpoint"
    base_url: str | None = None
    api_key_env: str | None = None
    serve: Literal["llama"] | None = None
    serve_args: str = ""
    images: bool | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    concurrency: int | None = None
    timeout_s: float | None = None
    budget: float | None = None
    price: str | None = None


def draft(
    folder: Path,
    model: str,
    asked: AskedModel,
    n: int = 100,
    from_: Path | None = None,
    only: Literal["wording", "distractors"] | None = None,
    out: Path | None = None,
    settings: list[str] | None = None,
    yes: bool = False,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Let a model write questions on your photos and name tools; agrotools runs them and drops what fails a check.

    No value of an answer comes from the model: tools and labels make it. What passes goes to a folder for people to
    review, the doubted drafts first. A command that was stopped goes on when it is given again.
    """
    from agrotools.core import UsageError
    from agrotools.formats.benchmark import HEADER_FILE
    from agrotools.runner.asking import AT_ONCE
    from agrotools_build.drafting.working import (
        Drafting,
        DraftOptions,
        check_folder_of,
        claim_folder,
        draft,
    )

    target = (out or Path(f"{folder.expanduser().resolve().name}-drafts")).expanduser()
    if only is not None and from_ is not None:
        raise UsageError("--from is for questions, not for --only", hint="leave out one of them")
    seeds = _seeds(from_) if from_ is not None else ()
    server = _server(model, asked)
    endpoint = _endpoint(model, asked, server)
    with ExitStack() as stack:
        stack.enter_context(stop_message("drafts so far are kept", "to go on"))
        _check_folder(folder.expanduser())
        check_folder_of(target, folder.expanduser())
        built = target
        if dry_run:
            built = Path(stack.enter_context(TemporaryDirectory(prefix="agrotools-")))
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            is_built = not (folder.expanduser() / HEADER_FILE).is_file()
            benchmark = _benchmark(folder.expanduser(), built, settings or [], yes=yes)
        if not dry_run:
            claim_folder(target, folder.expanduser())
        options = DraftOptions(
            kind=only or "question",
            most=n,
            seeds=seeds,
            is_built=is_built,
            shows_pictures=asked.images is not False,
            settings=_settings(asked),
            at_once=_at_once(asked, server) or AT_ONCE,
        )
        name = Path(model).name if server is not None else model
        drafting = Drafting(benchmark, target, options, name)
        if dry_run:
            _print_plan(drafting, endpoint, as_json=as_json)
            return
        done = draft(
            drafting,
            lambda: _priced(endpoint),
            server,
            note=lambda line: typer.echo(line, err=True),
            progress=terminal_progress(),
        )
    if as_json:
        print_json(_as_data(done))
    else:
        _print_drafted(done)
    if done.error is not None:
        typer.echo(f"{count_text(done.missing, 'draft')} missing: {done.error.message}", err=True)
        typer.echo(f"hint: {done.error.advice or 'run the same command again to go on'}", err=True)
        raise typer.Exit(code_of(done.error) or NOT_DONE)


def _seeds(file: Path) -> tuple[str, ...]:
    """Return the questions of a file, one a line; lines that begin with # are comments."""
    from agrotools.core import UsageError
    from agrotools.core.files import read_text

    try:
        lines = read_text(file.expanduser()).splitlines()
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", hint="a text file, a question a line"
        ) from error
    seeds = [" ".join(line.split()) for line in lines]
    questions = tuple(dict.fromkeys(seed for seed in seeds if seed and not seed.startswith("#")))
    if not questions:
        raise UsageError(f"{file} holds no question", hint="write a question on each line")
    return questions


def _check_folder(folder: Path) -> None:
    from agrotools.core import UsageError

    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {folder}",
            hint="give a folder of pictures with a table of labels, or a benchmark folder",
        )


def _benchmark(folder: Path, out: Path, settings: list[str], *, yes: bool) -> "Benchmark":
    """Return the benchmark to draft from: a folder that is one, or one built of the photographs and table in it."""
    from agrotools.core import UsageError
    from agrotools.formats.benchmark import HEADER_FILE
    from agrotools.loading import load_benchmark
    from agrotools_build.cli.own_farm import build_from_table
    from agrotools_build.drafting.working import LABELLED_FOLDER

    if (folder / HEADER_FILE).is_file():
        if settings:
            raise UsageError(
                "--set is for a table of labels, and this is a benchmark folder",
                hint="leave it out",
            )
        return load_benchmark(folder)
    tables = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in _TABLES and not path.name.startswith((".", "~"))
    )
    if len(tables) != 1:
        found = f"{len(tables)} tables ({', '.join(path.name for path in tables)})"
        build = command_line("build", "--images", folder, "--answers", "TABLE", "--out", "mine")
        raise UsageError(
            f"{folder} holds {found if tables else 'no table of labels'}",
            hint=f"put one table ({', '.join(_TABLES)}) into the folder; or build a benchmark first, and draft from "
            f"it: {build}",
        )
    built = out / LABELLED_FOLDER
    build_from_table(
        folder, tables[0], built, None, yes=yes, given=settings, progress=terminal_progress()
    )
    return load_benchmark(built)


def _server(model: str, asked: AskedModel) -> "LocalServer | None":
    from agrotools.core import UsageError
    from agrotools.models.local_models import local_model
    from agrotools.models.local_server import LocalServer

    if asked.serve is None and local_model(model) is None:
        if asked.serve_args:
            raise UsageError("--serve-args needs --serve", hint="name the program: --serve llama")
        return None
    if asked.base_url:
        raise UsageError(
            "--serve starts a server, and --base-url names one that runs", hint="omit one of them"
        )
    return LocalServer(model, asked.serve_args)


def _endpoint(model: str, asked: AskedModel, server: "LocalServer | None") -> "Endpoint":
    from agrotools.models import Endpoint, WireSettings

    given = {"concurrency": _at_once(asked, server)}
    timeout_s = asked.timeout_s or (_SERVED_TIMEOUT_S if server else None)
    if timeout_s:
        given |= {"timeout_s": timeout_s, "stall_s": timeout_s}
    wire = WireSettings.model_validate(given)
    return Endpoint(
        model, asked.base_url, asked.api_key_env, wire, asked.price, asked.budget, server
    )


def _at_once(asked: AskedModel, server: "LocalServer | None") -> int | None:
    return asked.concurrency or (server.slots if server else None)


def _settings(asked: AskedModel) -> "ModelSettings":
    from agrotools_build.drafting.working import DRAFT_SETTINGS

    given = {"temperature": asked.temperature, "max_output_tokens": asked.max_output_tokens}
    return DRAFT_SETTINGS.model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )


def _priced(endpoint: "Endpoint") -> "PricedModel":
    """Return the model with its price, and say if its budget has no effect."""
    from agrotools.models import priced_model

    helper = priced_model(endpoint)
    if helper.budget_usd is not None and helper.price and helper.price.source == "local":
        note = "no cost is known, and --budget has no effect without --price IN/OUT"
        typer.echo(f"requests to {helper.base_url} are taken as free: {note}", err=True)
    return helper


def _print_plan(drafting: "Drafting", endpoint: "Endpoint", *, as_json: bool) -> None:
    """Print what would be asked for, and what it may cost."""
    from agrotools_build.drafting.working import expected_cost

    records, pending = drafting.divided(drafting.stored())
    cost = expected_cost(drafting, pending, _priced(endpoint))
    if as_json:
        plan = {"drafts": len(pending), "known": len(records), "out": str(drafting.out)}
        low, high = cost.output_tokens
        print_json(
            plan
            | {
                "requests": cost.requests,
                "input_tokens": cost.input_tokens,
                "output_tokens": {"low": low, "high": high},
                "usd": {"low": cost.usd_low, "high": cost.usd_high},
            }
        )
        return
    typer.echo(f"{count_text(len(pending), 'draft')} to ask for, {len(records)} known: {cost}")


def _as_data(done: "Drafted") -> dict[str, object]:
    return {
        "queue": str(done.queue) if done.queue else None,
        "queued": done.queued,
        "doubted": done.doubted,
        "asked": done.asked,
        "known": done.known,
        "cached": done.cached,
        "missing": done.missing,
        "funnel": done.funnel.model_dump(mode="json") if done.funnel else None,
        "examples": dict(done.examples),
        "input_tokens": done.input_tokens,
        "output_tokens": done.output_tokens,
        "usd": done.usd,
        "error": done.error.message if done.error else None,
    }


def _print_drafted(done: "Drafted") -> None:
    from agrotools.report.description import funnel_tables
    from agrotools.report.terminal import print_parts
    from agrotools_build.drafting.reasons import REASONS

    if done.funnel is not None:
        print_parts(funnel_tables(done.funnel))
        for reason in done.funnel.dropped:
            example = done.examples.get(reason, "")
            typer.echo(f"  {reason}: {REASONS.get(reason, '')}{f' ({example})' * bool(example)}")
    if done.tokens:
        typer.echo(done.tokens)
    if done.cached:
        replies = count_text(done.cached, "reply", "replies")
        typer.echo(
            f"{replies} kept from earlier requests like these: the model was not asked again"
        )
    if done.queue is None:
        typer.echo("no draft passed the checks: there is nothing to review")
        return
    doubted = f"{done.doubted} doubted ones first"
    typer.echo(f"{count_text(done.queued, 'draft')} to review in {done.queue}, {doubted}")
    typer.echo(f"next: {command_line('review', done.queue)}")
