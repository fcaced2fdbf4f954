"""Table of what this package adds to the engine. Importing it imports nothing else."""

from agrotools.packages import CommandEntry, PackageTable

_HERE = __name__.rpartition(".")[0]

TABLE = PackageTable(
    package=_HERE,
    commands={
        "Own data": {
            "init": CommandEntry(
                f"{_HERE}.cli.build:init",
                "Write a new benchmark: a tool, questions and a test, as a package.",
            ),
            "build": CommandEntry(
                f"{_HERE}.cli.build:build",
                "Build a benchmark from your photos, data sets or drawn scenes.",
            ),
            "draft": CommandEntry(
                f"{_HERE}.cli.draft:draft",
                "Let a model write questions on your photos, which code checks and people review.",
            ),
            "review": CommandEntry(f"{_HERE}.cli.review:review", "Review samples on a local page."),
            "export": CommandEntry(
                f"{_HERE}.cli.build:export", "Write a benchmark or a run in another format."
            ),
        }
    },
    answers=("sources/drawn",),
    functions={
        "check_env": f"{_HERE}.cli.doctor_env:check_env",
        "check_quality": f"{_HERE}.quality:check_quality",
        "count_deciding": f"{_HERE}.deciding:count_deciding",
        "funnel_of": f"{_HERE}.drafting.reviewed:funnel_of",
        "list_unchecked": f"{_HERE}.cues:list_unchecked",
        "print_findings": f"{_HERE}.cli.findings:print_findings",
        "write_fresh": f"{_HERE}.sources.drawn.fresh:write_fresh",
    },
)
"""Table of this package, which the engine reads."""
