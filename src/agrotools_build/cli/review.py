"""``agrotools review``: people review samples of a benchmark."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from agrotools.cli.output import address_printer, count_text, print_json, terminal_progress
from agrotools.cli.reading import new_readings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agrotools_build.review.agreement import SummaryPart
    from agrotools_build.review.material import Applied


def review(
    what: str,
    by: str = "",
    sample: int | None = None,
    port: int | None = None,
    log: Path | None = None,
    summary: bool = False,
    apply: bool = False,
    out: Path | None = None,
    disputed: Literal["keep", "drop"] | None = None,
    accepted: bool = False,
    data_root: Path | None = None,
    as_json: bool = False,
) -> None:
    """Review samples on a local page: accept, edit or reject them, correct their traces, write new questions.

    Only this machine can open it, with the address that is printed. Every decision is stored at once.
    """

    from agrotools.core import UsageError
    from agrotools_build.review import require_extra
    from agrotools_build.review.agreement import ReviewJournal, review_parts, summary_of
    from agrotools_build.review.material import apply_review, drawn_sample, open_material

    _check_options(by, sample, summary=summary, apply=apply, out=out, as_json=as_json)
    if accepted and not apply:
        raise UsageError("--accepted is for --apply", hint="--apply --accepted --out NEW")
    if not (apply or summary):
        require_extra()
    material = open_material(
        what,
        log=log,
        data_root=data_root,
        progress=terminal_progress(),
        readings=new_readings(yes=False),
    )
    if sample is not None:
        material = drawn_sample(material, sample)
    journal = ReviewJournal(material.journal)
    decisions = journal.decisions()
    if summary:
        state = summary_of(material.contents, decisions, material.notes, material.corrected)
        if as_json:
            print_json(state.model_dump(mode="json"))
            return
        title = {"text": f"{material.title}: {count_text(state.samples, 'sample')}"}
        _print_summary([title, *review_parts(state), *({"text": note} for note in state.notes)])
        return
    if apply:
        assert out is not None
        applied = apply_review(material, decisions, out, disputed=disputed, accepted=accepted)
        print_json(applied.model_dump(mode="json")) if as_json else _print_applied(applied)
        raise typer.Exit(1 if applied.faults else 0)
    for note in material.notes:
        typer.echo(note, err=True)

    from agrotools_build.review.app import Review, serve_review

    about = f"{material.title}: {count_text(len(material.facts), 'sample')}, decisions go to {journal.path}"
    serve_review(Review(material, journal, by.strip()), port, started=address_printer(about))


def _check_options(
    by: str, sample: int | None, *, summary: bool, apply: bool, out: Path | None, as_json: bool
) -> None:
    """Refuse options that do not fit together, and a name that is too long."""
    from agrotools.core import UsageError
    from agrotools_build.review.agreement import LONGEST_NAME

    if apply != (out is not None) or (apply and summary):
        raise UsageError(
            "--apply and --out belong together, without --summary", hint="--apply --out NEW"
        )
    if as_json and not (apply or summary):
        raise UsageError("--json is for --summary and --apply", hint="add one of them")
    if len(by.strip()) > LONGEST_NAME or not by.isprintable():
        raise UsageError(
            f"a reviewer's name has at most {LONGEST_NAME} characters on one line",
            hint="give a shorter --by",
        )
    if apply and sample is not None:
        raise UsageError(
            "--apply writes all samples", hint="leave out --sample: others are kept as they are"
        )


def _print_applied(applied: "Applied") -> None:
    dropped = sum(map(len, applied.dropped.values()))
    typer.echo(
        f"{applied.out}: {count_text(applied.kept, 'sample')}, {dropped} dropped, {len(applied.edited)} edited"
    )
    if applied.corrected or applied.written:
        typer.echo(
            f"  corrected on the page: {len(applied.corrected)}, written from nothing: {len(applied.written)}"
        )
    for reason, ids in applied.dropped.items():
        typer.echo(
            f"  dropped {len(ids)}: {reason} ({', '.join(ids[:5])}{', …' if len(ids) > 5 else ''})"
        )
    if applied.undecided:
        undecided = count_text(applied.undecided, "sample")
        typer.echo(
            f"  without a decision, kept as they are: {undecided} (--accepted leaves them out)"
        )
    for fault in applied.faults:
        typer.echo(fault, err=True)


def _print_summary(parts: "Iterable[SummaryPart]") -> None:
    """Print the paragraphs and tables of a summary of a review."""
    from agrotools.report.layout import Paragraph, new_table
    from agrotools.report.terminal import print_parts

    for part in parts:
        if "text" in part:
            print_parts([Paragraph(part["text"], "")])
            continue
        first, *headings = part["head"]
        table = new_table(first, headings)
        for row in part["rows"]:
            table.add_row(*row)
        print_parts([table])
