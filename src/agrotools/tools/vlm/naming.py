"""A name for what a picture shows, out of a list, as a vision model chooses it."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field

from agrotools.tools.vlm.asking import FLAG, ModelReply, asked
from agrotools.tools.vlm.picture import picture_for_model
from agrotools.tools.vlm.said import Named
from agrotools.vision.formats import Box

MOST_NAMES = 400


class NamedGuess(ModelReply):
    """One name that may be the right one."""

    name: Annotated[str, Field(description="exactly as it stands in the list")]
    score: Annotated[float, Field(ge=0, le=1, description="how likely it is the right one, 0 to 1")]


class NamedGuesses(ModelReply):
    """The names that may be right, the likeliest first."""

    candidates: Annotated[list[NamedGuess], Field(max_length=20, description="[] where none of the list is shown")]


def choose_name(
    pixels: NDArray[np.uint8], box: Box, what: str, names: Sequence[str], *, top_k: int = 3, hint: str = ""
) -> Named:
    """What a vision model takes the part ``box`` of a picture, uint8 (rows, columns, 3), for.

    Args:
        what: what is to be named: "weed species", "disease or pest of bean".
        names: all that may be said; at least one, at most 400.
        top_k: candidates at most.
        hint: a sentence more about the picture.

    Raises:
        ToolError: see :func:`agrotools.tools.vlm.asking.asked`; a name outside the list is no usable reply.
    """
    picture = picture_for_model(pixels, box)
    known = {_folded(name): name for name in names[:MOST_NAMES]}
    text = (
        f"Which {what} does this picture show? {hint}\nChoose from this list and from nothing else: "
        f"{orjson.dumps(list(known.values())).decode()}\nGive up to {top_k} candidates, the likeliest first. The "
        "scores together are at most 1. If it is none of them, or nothing can be told, give no candidates."
    )

    def fault(guesses: NamedGuesses) -> str | None:
        outside = [guess.name for guess in guesses.candidates if _folded(guess.name) not in known]
        return f"{outside[0][:60]!r} is not in the list" if outside else None

    guesses, note = asked(text, picture.jpeg, NamedGuesses, fault)
    best: dict[str, float] = {}
    for guess in guesses.candidates:
        name = known[_folded(guess.name)]
        best[name] = max(guess.score, best.get(name, 0.0))
    ranked = sorted(best.items(), key=lambda item: -item[1])[:top_k]
    return Named(tuple(ranked), (f"name: {note}", "scores are the model's own word, not calibrated"), (FLAG,))


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())
