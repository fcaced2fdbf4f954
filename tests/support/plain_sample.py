"""The smallest sample there is: a yes/no question without files, for tests that need only its identity."""

from typing import Any

from agrotools.core import BooleanSlot, Sample


def plain_sample(name: str = "s1", **changes: Any) -> Sample:
    """A sample with id ``name``; ``changes`` are other fields."""
    fields: dict[str, Any] = {
        "id": name, "query": "Is this so?", "files": (), "family": "SI", "task_type": "weed_crop_area",
        "answer_type": "exact", "template": "t", "source": "made", "toolset": (),
        "answer": (BooleanSlot(name="weeds", label="weeds", value=True),),
    }  # fmt: skip
    return Sample.model_validate(fields | changes)
