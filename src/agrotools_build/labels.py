"""Labels of a folder that was built of a table: what people noted of all its photographs, asked about or not."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue

from agrotools.core import Arguments, FrozenModel
from agrotools.core.files import read_lines, write_whole
from agrotools_build.templates.thing import Subject, Thing

LABELS_FILE = "labels.jsonl"
_HINT = "build the folder again"


class NotedLabel(FrozenModel):
    """The result of a call as people noted it. ``files``: hash of each file that the call names."""

    tool: str
    arguments: Arguments
    files: Mapping[str, str]
    truth: dict[str, JsonValue]


def labels_of_subjects(subjects: Iterable[Subject]) -> list[NotedLabel]:
    """Return what is known of each thing of the subjects."""
    things: list[Thing] = [
        subject.shown(index, 1) for subject in subjects for index in range(subject.things)
    ]
    return [
        NotedLabel(
            tool=thing.tool,
            arguments=thing.arguments,
            files={file.name: str(file.sha256) for file in thing.files},
            truth=dict(thing.truth),
        )
        for thing in things
    ]


def write_labels(folder: Path, labels: Iterable[NotedLabel]) -> None:
    """Write the labels into a benchmark folder."""
    text = "".join(f"{label.model_dump_json()}\n" for label in labels)
    write_whole(folder / LABELS_FILE, text.encode(), synced=False)


def read_labels(folder: Path) -> list[NotedLabel]:
    """Return the labels in a benchmark folder; none of one that was built otherwise.

    Raises:
        RunStoreError: the file cannot be read.
    """
    return read_lines(folder / LABELS_FILE, NotedLabel, _HINT)
