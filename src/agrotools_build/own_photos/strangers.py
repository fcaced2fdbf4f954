"""Strangers: pictures that show none of what a table of photos names, such as other crops or no plants at all.

Each is shown with a question of one of the own photos, in the same words: an unanswerable twin of that question. Its
owner says that it has no answer, so that it stays in the benchmark whatever a tool says about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from agrotools.core import AbstainSlot, SampleFile
from agrotools_build.choosing import Chosen
from agrotools_build.own_photos.plan import Column, SkippedRows, measures
from agrotools_build.templates.thing import Subject, Thing
from agrotools_build.twins import LABEL, paired

GROUP = "strangers"
"""Name of the group of samples about strangers; its value is the name of their folder."""
_PREFIX = "stranger-"
_NOTHING_NAMED: Mapping[str, JsonValue] = {"best": None, "abstained": True, "candidates": []}
"""What a perfect tool returns for a stranger."""


def named_column(columns: Sequence[Column]) -> Column | None:
    """Return the first column of names, whose questions are asked about strangers; None if there is none."""
    return next((each for each in columns if measures()[each.ask].kind == "name"), None)


def stranger_subject(
    number: int, file: SampleFile, path: Path, folder: Path, column: Column
) -> Subject:
    """Return the subject of one stranger. No question is chosen for it: it gets one of an own photo."""

    def shown(index: int, position: int) -> Thing:
        raise NotImplementedError("strangers have no questions of their own")

    metadata: dict[str, JsonValue] = {
        "column": column.column,
        "photos": {str(file.sha256): path.name},
    }
    name = f"{_PREFIX}{number}"
    return Subject(name, 1, shown, metadata, of=GROUP, groups={GROUP: folder.name})


def with_strangers(
    chosen: Sequence[Chosen],
    strangers: Sequence[tuple[Subject, SampleFile]],
    column: Column,
    skipped: SkippedRows,
) -> list[Chosen]:
    """Return the questions, each of the first ones followed or preceded by its twin about a stranger."""
    of = f"own:{column.column}"
    alone = [item for item in chosen if item.question.of == of and len(item.instance.files) == 1]
    # One question per photo first, so that the strangers stay in clusters of their own.
    first = {item.subject.name: item for item in reversed(alone)}
    spread = [item for item in alone if first[item.subject.name] is item]
    spread += [item for item in alone if first[item.subject.name] is not item]
    twins = {
        id(item): _twin(item, subject, file)
        for item, (subject, file) in zip(spread, strangers, strict=False)
    }
    for subject, _ in strangers[len(spread) :]:
        names = subject.metadata["photos"]
        example = next(iter(names.values())) if isinstance(names, dict) else ""
        reason = f"has no question: there are {len(spread)} about single photos"
        skipped.add(
            "stranger", reason, "--set samples=NUMBER with a larger number", example=str(example)
        )
    asked: list[Chosen] = []
    for item in chosen:
        twin = twins.get(id(item))
        asked += [item] if twin is None else paired(item, twin)
    return asked


def _twin(item: Chosen, subject: Subject, file: SampleFile) -> Chosen:
    """Return the same question about a stranger, which cannot be answered."""
    instance = item.instance
    named = file.model_copy(
        update={"name": f"{Path(instance.files[0].name).stem}{Path(file.path).suffix}"}
    )
    old = instance.files[0].name
    calls = tuple(
        replace(
            call,
            arguments={
                key: named.name if value == old else value for key, value in call.arguments.items()
            },
            truth=dict(_NOTHING_NAMED),
            thought=call.thought.replace(old, named.name),
        )
        for call in instance.calls
    )
    slot = AbstainSlot(name="refusal", label=LABEL, reason="wrong_subject", asks=instance.slots)
    unanswerable = replace(
        instance, files=(named,), calls=calls, slots=(slot,), has_known_truth=True
    )
    return replace(
        item, subject=subject, instance=unanswerable, pair=f"{item.subject.name} {item.query}"
    )
