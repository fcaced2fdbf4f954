"""``agrotools grade``: blind grading of the answers of runs by people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.options import DataRoot, Port
from agrotools.cli.output import address_printer, count_text, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agrotools.build.review.agreement import SummaryPart


def grade(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one benchmark.")],
    reviewer: Annotated[str, typer.Option(help="Grader's name. Without it the page asks.")] = "",
    rubrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="TOML file with [[rubric]] tables. Default: criteria of Agent-X.", show_default=False
        ),
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Number of samples to draw. Default: all.")] = None,
    mode: Annotated[
        str | None, typer.Option(help="end-to-end or no-tool.", show_default="end-to-end if all runs have it")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order and of the drawn samples.")] = 0,
    log: Annotated[
        Path | None,
        typer.Option(
            help="File of grades. Default: grades.jsonl in the folder that holds the runs.", show_default=False
        ),
    ] = None,
    port: Port = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print progress and agreement, and results once all is graded, then exit.")
    ] = False,
    data_root: DataRoot = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print --summary as JSON.")] = False,
) -> None:
    """Grade answers of several runs by rubrics on a local page, without the names of the models.

    Only this machine can open it, with the address that is printed. Every grade is stored at once; the same command
    resumes. agrotools chart judges --grades compares the grades with those of models.
    """
    from agrotools.build.review import require_extra
    from agrotools.build.review.agreement import ReviewJournal
    from agrotools.build.review.grading import grading_parts, open_sheet, read_scheme, summarise_grades
    from agrotools.core import UsageError
    from agrotools.report.judges import Grade

    if as_json and not summary:
        raise UsageError("--json is for --summary", hint="add it")
    if not summary:
        require_extra()
    sheet = open_sheet(
        runs, scheme=read_scheme(rubrics), mode=mode, seed=seed, samples=samples, log=log, data_root=data_root
    )
    journal = ReviewJournal(sheet.material.journal, Grade)
    notes = sheet.material.notes
    if summary:
        result = summarise_grades(sheet, journal.decisions(), notes)
        if as_json:
            print_json(result.model_dump(mode="json"))
            return
        print_summary([*grading_parts(sheet, result), *({"text": note} for note in notes)])
        return
    for note in notes:
        typer.echo(note, err=True)

    answers = count_text(len(sheet.items), "answer")
    about = f"{sheet.material.title}: {answers} of {count_text(len(runs), 'run')}, grades go to {journal.path}"

    from agrotools.build.review.app import Grading, serve_review

    started = address_printer(about)
    serve_review(Grading(sheet, journal, reviewer.strip()), port, started=started)


def print_summary(parts: "Iterable[SummaryPart]") -> None:
    """Print the paragraphs and tables of a summary of a review or a grading."""
    from agrotools.report.layout import Paragraph, Part, new_table
    from agrotools.report.terminal import print_parts

    shown: list[Part] = []
    for part in parts:
        if "text" in part:
            shown.append(Paragraph(part["text"], ""))
            continue
        first, *headings = part["head"]
        table = new_table(first, headings)
        for row in part["rows"]:
            table.add_row(*row)
        shown.append(table)
    print_parts(shown)
