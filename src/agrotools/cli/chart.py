"""``agrotools chart``: a chart of the judges of runs, with its tables."""

from pathlib import Path
from typing import Any

from agrotools.cli.options import command_group, sub_command
from agrotools.cli.output import show_drawing

app = command_group("Draw a chart of the judges of runs, and print its tables.")


@sub_command(app, "chart judges")
def judges(
    runs: list[Path],
    out: Path = Path("judges.svg"),
    mode: str | None = None,
    metric: str | None = None,
    scores: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Do the judges agree? Ranking of the models by each judge, and agreement on the ranking and on single answers."""
    from agrotools.report.judges import agreement_tables, judge_agreement

    options: dict[str, Any] = {"mode": mode, "metric": metric, "scores": scores or ()}
    show_drawing(out, as_json, lambda: judge_agreement(runs, **options), agreement_tables)
