"""Closed vocabularies of the field: families, task types, modes, terminations.

Families and task types are those of the AgroTools benchmark (arXiv 2605.22366, section 3.1).
"""

from typing import Literal

Mode = Literal["no-tool", "step-by-step", "end-to-end"]
MODES: tuple[Mode, ...] = ("no-tool", "step-by-step", "end-to-end")

Protocol = str
"""Name of a protocol, how a conversation is held: one of :data:`PROTOCOLS` or of a benchmark plug-in."""
PROTOCOLS: tuple[Protocol, ...] = ("react", "tool-calling")
"""Protocols of the engine."""

AnswerType = Literal["exact", "tolerance", "plot", "open_text", "image"]
ANSWER_TYPES: tuple[AnswerType, ...] = ("exact", "tolerance", "plot", "open_text", "image")

FileKind = Literal["image", "raster", "depth", "mask", "table", "video", "audio", "document"]
"""Kinds of files; ``document`` is whatever is none of the others."""

Termination = Literal[
    "answered", "max_steps", "unparseable", "length", "context", "filtered", "timeout", "infrastructure"
]
"""Endings of a sample. Only ``infrastructure`` makes it *invalid* (our failure); all others are results."""

FAMILIES: dict[str, str] = {
    "RR": "Recognition and Retrieval",
    "CM": "Counting and Measurement",
    "SI": "Segmentation Interpretation",
    "CD": "Change Detection",
    "VA": "Visualization and Analytics",
}

FAMILY_OF_TASK_TYPE: dict[str, str] = {
    "pest_diagnosis": "RR",
    "weed_identification": "RR",
    "crop_disease": "RR",
    "tree_counting": "CM",
    "apple_size": "CM",
    "organ_counting": "CM",
    "lesion_severity": "SI",
    "canopy_height": "SI",
    "weed_crop_area": "SI",
    "farmland_change": "CD",
    "farm_pond_change": "CD",
    "band_selection": "VA",
    "plotting": "VA",
}
