"""The responsible-AI part of a Croissant description: only what a header and its counts can vouch for."""

from collections.abc import Mapping
from typing import Any

from agrotools import __version__
from agrotools.build.export.left_out import left_out
from agrotools.build.export.tally import Tally
from agrotools.core.benchmark_header import BenchmarkHeader

RAI_FIELDS = (
    "dataCollection",
    "dataCollectionType",
    "dataCollectionMissingData",
    "dataPreprocessingProtocol",
    "dataAnnotationProtocol",
    "dataAnnotationAnalysis",
    "annotationsPerItem",
    "annotatorDemographics",
    "machineAnnotationTools",
    "dataBiases",
    "dataLimitations",
    "dataUseCases",
    "dataSocialImpact",
    "personalSensitiveInformation",
    "dataReleaseMaintenancePlan",
)
"""Names that ``[metadata.rai]`` of a header may set, each a text or a list of texts."""


def rai_fields(header: BenchmarkHeader, counted: Tally) -> dict[str, Any]:
    """The properties ``rai:...``. What ``metadata.rai`` of the header says takes the place of what is said here."""
    described: dict[str, Any] = {
        "dataCollection": _collection(header),
        "dataCollectionType": ["Others"] if header.synthetic else ["Secondary Data Analysis"],
        "dataPreprocessingProtocol": [
            "Files are as they were drawn."
            if header.synthetic
            else "Files are as the sources have them, or cut from theirs; their names tell nothing of the answers."
        ],
        "dataAnnotationProtocol": [
            "Answers follow by rule from the annotation of the sources"
            + (" (for drawings: from what was drawn)" if header.synthetic else "")
            + ". Reference calls are declared by templates and run with real tools; what they returned is recorded "
            "beside what is true. Tolerances are set by task, before any tool runs."
        ],
        "machineAnnotationTools": [f"agrotools {__version__} (reference calls)"],
        "dataBiases": _biases(counted),
        "dataLimitations": _limitations(header, counted),
        "dataUseCases": ["Evaluation of multimodal models that use tools. Not meant for training."],
        "dataSocialImpact": "A model that does well here may still be wrong about a field. It gives no ground for "
        "treating plants, or for buying or spraying anything, without a person who looks.",
        "personalSensitiveInformation": [
            "None: every picture was drawn by a program."
            if header.synthetic
            else "None is intended: pictures show plants and land. They were not searched for people, plates or "
            "places that could be recognised."
        ],
    }
    if missing := left_out(header.metadata):
        described["dataCollectionMissingData"] = "Left out while building: " + "; ".join(
            f"{where}: {what}" for where, what in missing
        )
    given = header.metadata.get("rai")
    if isinstance(given, Mapping):
        described |= {name: value for name, value in given.items() if name in RAI_FIELDS}
    return {f"rai:{name}": described[name] for name in RAI_FIELDS if name in described}


def _collection(header: BenchmarkHeader) -> str:
    names = "; ".join(f"{source.name}{f' ({source.url})' if source.url else ''}" for source in header.sources)
    begun = "Drawn by a program from fixed seeds." if header.synthetic else "Taken from data sets of others."
    return f"{begun} Sources: {names}." if names else begun


def _biases(counted: Tally) -> list[str]:
    biases: list[str] = []
    for what, counts in (("source", counted.sources), ("task type", counted.task_types)):
        if counts:
            name, most = counts.most_common(1)[0]
            share = 100 * most / counted.samples
            biases.append(f"{len(counts)} {what}{'s' if len(counts) > 1 else ''}; {share:.0f} % of samples are {name}.")
    languages = {"en": "English", "zh": "Chinese"}
    biases.append(f"Questions are in {' and '.join(languages[name] for name in sorted(counted.languages))}.")
    return biases


def _limitations(header: BenchmarkHeader, counted: Tally) -> list[str]:
    limits: list[str] = []
    if header.synthetic:
        limits.append("Synthetic: a score on drawings does not say how well a model does on photographs.")
    limits.append(
        f"{counted.samples} samples on {counted.all_files} different files: samples that share files are not "
        "independent, so intervals are over clusters of them."
    )
    if not header.synthetic:
        limits.append("Labels are as good as the sources'; crops, regions and seasons are the sources'.")
    return limits
