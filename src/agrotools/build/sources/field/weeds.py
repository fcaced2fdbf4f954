"""Crop and weeds: photographs of a carrot field (CWFID).

Answers come from the annotators' masks. Part of the vegetation was not named by them; a question is only asked where
its answer is the same whether those plants are crop or weeds. The images are false colour, as a farmer's
red-and-infrared camera gives them.

The images form fixed pairs by rank of their hash, and a question about two images stays within a pair: so there are as
many clusters as pairs, and a head trained on other pairs has never seen the images of a question.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth, count_area
from agrotools.build.asking import Subject
from agrotools.build.picture_parts import Region
from agrotools.build.questions import QUESTIONS, Picture
from agrotools.build.questions.question import MEASURE
from agrotools.build.sources.cwfid import LICENCE, FieldImage, read_cwfid
from agrotools.build.sources.part import Part
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.core.hashing import pairs_by_hash
from agrotools.formats.folder import FILES_FOLDER
from agrotools.tools.crop_weed.heads import list_heads

SAMPLES = 100
NOTE = (
    "Carrot field seen straight from above, two-band camera shown in false colour: the green channel is near infrared,"
    " the red and blue channels both show red, so plants look green."
)
SOURCE = SourceNote(
    name="CWFID",
    licence=LICENCE,
    url="https://github.com/cwfid/dataset",
    citation="Haug, S. and Ostermann, J.: A Crop/Weed Field Image Dataset for the Evaluation of Computer Vision Based"
    " Precision Agriculture Tasks. ECCV Workshops (CVPPP), 2014.",
    note="Questions, reference calls and tolerances are by agrotools; images and masks are the authors'.",
)


def weeds(folder: Path) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or has fewer than four images."""
    images = read_cwfid(folder)
    by_hash = {image.sha256: image for image in images}
    pairs = [[by_hash[member] for member in pair] for pair in pairs_by_hash(by_hash)]
    pairs = [pair for pair in pairs if len(pair) == 2]
    if len(pairs) < 2:
        raise BenchmarkError(f"{folder} holds {len(images)} images; at least four are needed")
    return Part(
        "weeds",
        SOURCE,
        [_subject(number, pair) for number, pair in enumerate(pairs)],
        QUESTIONS,
        SAMPLES,
        {_stored(image): image.path for image in by_hash.values()},
        {"images": len(by_hash), "pairs": len(pairs)},
        how_parted,
    )


def how_parted(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """How the tool parted crop from weeds in the recorded observations: calls by method, and the heads it used.

    With ``none`` the observation holds no crop and no weeds, and no agent that trusts the tool can answer.
    """
    observations = [
        step.observation.result
        for sample in samples
        for step in (sample.reference.steps if sample.reference else ())
        if step.tool == MEASURE and step.observation and step.observation.result
    ]
    methods = Counter(str(result.get("method")) for result in observations)
    notes = " ".join(str(result.get("notes")) for result in observations)
    used = set(re.findall(r"by head ([\w.-]+)", notes))
    heads: dict[str, JsonValue] = {head.name: head.weights_sha256 for head in list_heads()[0] if head.name in used}
    how: dict[str, JsonValue] = {"separation": dict(methods), "heads": heads}
    if methods["none"]:
        how["note"] = (
            f"In {methods['none']} of {methods.total()} recorded measurements crop and weeds were not told apart. Train"
            " heads (agrotools packs train crop-weed) and build again: each pair then has a head that never saw it."
        )
    return how


def _stored(image: FieldImage) -> str:
    return f"{FILES_FOLDER}/{image.sha256[:16]}{image.path.suffix.lower()}"


def _subject(number: int, pair: list[FieldImage]) -> Subject:
    def picture(index: int, position: int) -> Picture:
        image = pair[index]
        file = SampleFile(
            name=f"image_{position}{image.path.suffix.lower()}",
            path=_stored(image),
            kind="image",
            sha256=image.sha256,
            width_px=image.width,
            height_px=image.height,
            note=NOTE,
        )

        def area(region: Region | None) -> AreaTruth:
            return count_area(image.classes, image.vegetation, region)

        return Picture((file,), {"image": file.name}, area, image.width, image.height)

    names: list[str] = [image.name for image in pair]
    return Subject(f"pair-{number}", 2, picture, {"pair": number, "images": [*names]})
