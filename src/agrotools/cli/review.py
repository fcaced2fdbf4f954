"""``agrotools review``: review the samples of a benchmark, and write a benchmark of the accepted ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agrotools.cli.grade import print_summary
from agrotools.cli.options import Port
from agrotools.cli.output import address_printer, count_text, print_json, terminal_progress

if TYPE_CHECKING:
    from agrotools.build.review.material import Applied


def review(
    what: Annotated[str, typer.Argument(metavar="DIR|RUN", help="Benchmark folder or name, or run folder.")],
    reviewer: Annotated[str, typer.Option(help="Reviewer's name. Without it the page asks.")] = "",
    port: Port = None,
    log: Annotated[
        Path | None, typer.Option(help="File of decisions. Default: review.jsonl in the folder.", show_default=False)
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print counts and inter-reviewer agreement, then exit.")
    ] = False,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Write the benchmark to --out, without rejected samples and with the agreed edits."
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="New folder for --apply.")] = None,
    disputed: Annotated[
        Literal["keep", "drop"] | None,
        typer.Option(help="With --apply: keep or drop samples on which reviewers disagree."),
    ] = None,
    data_root: Annotated[Path | None, typer.Option(help="Folder of the run's benchmark, if it was moved.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print --summary or --apply as JSON.")] = False,
) -> None:
    """Review samples on a local page: pictures, question, reference calls beside the truth, answer, automatic flags.

    Only this machine can open it, with the address that is printed. Every decision is stored at once.
    """

    from agrotools.build.review import require_extra
    from agrotools.build.review.agreement import LONGEST_NAME, Decision, ReviewJournal, review_parts, summary_of
    from agrotools.build.review.material import apply_review, open_material
    from agrotools.core import UsageError

    if apply != (out is not None) or (apply and summary):
        raise UsageError("--apply and --out belong together, without --summary", hint="--apply --out NEW")
    if as_json and not (apply or summary):
        raise UsageError("--json is for --summary and --apply", hint="add one of them")
    if len(reviewer.strip()) > LONGEST_NAME or not reviewer.isprintable():
        raise UsageError(
            f"a reviewer's name has at most {LONGEST_NAME} characters on one line", hint="give a shorter --reviewer"
        )
    if not (apply or summary):
        require_extra()
    material = open_material(what, log=log, data_root=data_root, progress=terminal_progress())
    journal = ReviewJournal(material.journal, Decision)
    decisions = journal.decisions()
    if summary:
        state = summary_of(material.contents, decisions, material.notes)
        if as_json:
            print_json(state.model_dump(mode="json"))
            return
        title = {"text": f"{material.title}: {count_text(state.samples, 'sample')}"}
        print_summary([title, *review_parts(state), *({"text": note} for note in state.notes)])
        return
    if apply:
        assert out is not None
        applied = apply_review(material, decisions, out, disputed=disputed)
        print_json(applied.model_dump(mode="json")) if as_json else _print_applied(applied)
        raise typer.Exit(1 if applied.faults else 0)
    for note in material.notes:
        typer.echo(note, err=True)

    about = f"{material.title}: {count_text(len(material.facts), 'sample')}, decisions go to {journal.path}"

    from agrotools.build.review.app import Review, serve_review

    started = address_printer(about)
    serve_review(Review(material, journal, reviewer.strip()), port, started=started)


def _print_applied(applied: "Applied") -> None:
    dropped = sum(map(len, applied.dropped.values()))
    typer.echo(f"{applied.out}: {count_text(applied.kept, 'sample')}, {dropped} dropped, {len(applied.edited)} edited")
    for reason, ids in applied.dropped.items():
        typer.echo(f"  dropped {len(ids)}: {reason} ({', '.join(ids[:5])}{', …' if len(ids) > 5 else ''})")
    if applied.undecided:
        typer.echo(f"  without a decision, kept as they are: {count_text(applied.undecided, 'sample')}")
    for fault in applied.faults:
        typer.echo(fault, err=True)
