"""The ``field`` benchmark: questions on real photographs of a carrot field with weeds.

Answers come from the annotators' masks. Part of the vegetation was not named by them; a question is only asked where
its answer is the same whether those plants are crop or weeds. The images are false colour, as a farmer's
red-and-infrared camera gives them.

The images form fixed pairs by rank of their hash, and a question about two images stays within a pair: so the
benchmark has as many clusters as pairs, and a head trained on other pairs has never seen the images of a question.
"""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from agrotools import __version__
from agrotools.construct.area_truth import AreaTruth, Region, count_area
from agrotools.construct.asking import Subject
from agrotools.construct.building import build_samples
from agrotools.construct.choosing import choose
from agrotools.construct.export import FILES_FOLDER, check_replaceable, replacing, write_benchmark
from agrotools.construct.progress import Progress, no_progress
from agrotools.construct.questions import QUESTIONS, Picture
from agrotools.construct.questions.question import MEASURE
from agrotools.construct.sources.cwfid import LICENCE, FieldImage, read_cwfid
from agrotools.core import BenchmarkError, Sample, SampleFile
from agrotools.core.benchmark_header import BenchmarkHeader, SourceNote
from agrotools.core.folds import pairs_by_hash
from agrotools.tools import AGROTOOLS
from agrotools.vision.crop_weed import list_heads

SAMPLES = 100
SEED = 20140906
NOTE = (
    "Carrot field seen straight from above, two-band camera shown in false colour: the green channel is near infrared,"
    " the red and blue channels both show red, so plants look green."
)
_SOURCE = SourceNote(
    name="CWFID",
    licence=LICENCE,
    url="https://github.com/cwfid/dataset",
    citation="Haug, S. and Ostermann, J.: A Crop/Weed Field Image Dataset for the Evaluation of Computer Vision Based"
    " Precision Agriculture Tasks. ECCV Workshops (CVPPP), 2014.",
    note="Questions, reference calls and tolerances are by agrotools; images and masks are the authors'.",
)


def build_field(folder: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Build the benchmark from the data set in ``folder`` into ``out``, whole or not at all.

    Returns:
        The header, whose licence says that the images are for non-commercial research.

    Raises:
        BenchmarkError: the data set is incomplete, has fewer than four images, or ``out`` holds something else.
    """
    check_replaceable(out)
    images = read_cwfid(folder)
    by_hash = {image.sha256: image for image in images}
    pairs = [[by_hash[member] for member in pair] for pair in pairs_by_hash(by_hash)]
    pairs = [pair for pair in pairs if len(pair) == 2]
    if len(pairs) < 2:
        raise BenchmarkError(f"{folder} holds {len(images)} images; at least four are needed")
    subjects = [_subject(number, pair) for number, pair in enumerate(pairs)]
    chosen = choose(subjects, QUESTIONS, SAMPLES, SEED)
    with replacing(out) as made:
        (made / FILES_FOLDER).mkdir()
        for image in by_hash.values():
            shutil.copyfile(image.path, made / _stored(image))
        samples = build_samples(chosen, made, prefix="field", source="CWFID", toolset=AGROTOOLS, progress=progress)
        header = BenchmarkHeader(
            name="field",
            version="1",
            licence=f"Images and masks: {LICENCE} Questions and reference calls: Apache-2.0.",
            description="Crop, weeds and bare soil in real photographs of a carrot field (red and near infrared).",
            toolset=AGROTOOLS,
            sources=(_SOURCE,),
            metadata={
                "agrotools": __version__,
                "seed": SEED,
                "images": len(by_hash),
                "pairs": len(pairs),
                **how_parted(samples),
            },
        )
        write_benchmark(made, header, samples)
    return header


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
