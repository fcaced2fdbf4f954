"""How the questions are put: the settings of the AgriEval paper, and tests of the order of options."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from agrotools.core import FrozenModel

Order = Literal["given", "shuffled", "later", "rotated"]


class QuestionSettings(FrozenModel):
    """The options of ``agrotools eval agrieval`` and of other sets of questions (``--option NAME=VALUE``)."""

    part: Literal["all", "choice", "question"] = "all"
    """Multiple choice, open questions, or both."""
    files: str = ""
    """Names of files in the folder, separated by commas; the main files, or what there is, if empty."""
    shots: Annotated[int, Field(ge=0, le=5)] = 0
    """Solved examples before each question, of the same kind."""
    examples: Path | None = None
    """File that the examples are taken from; the questions of other groups if not given."""
    cot: bool = False
    """Ask for reasoning before the answer."""
    retrieval: Path | None = None
    """Index of a corpus (``agrotools kb index``); the passages it finds stand before the question."""
    passages: Annotated[int, Field(ge=1, le=20)] = 3
    order: Order = "given"
    """Options as in the file, shuffled, with right ones moved to later places, or once in every rotation."""
    seed: int = 0
    language: Literal["zh", "en"] = "zh"
    """Of the prompts."""

    @property
    def label(self) -> str:
        """What reports call this setting: ``zero-shot``, ``5-shot``, ``cot``, ``retrieval, shuffled``..."""
        told = [f"{self.shots}-shot"] if self.shots else []
        told += ["cot"] if self.cot else []
        told += ["retrieval"] if self.retrieval else []
        told = told or ["zero-shot"]
        return ", ".join([*told, *([self.order] if self.order != "given" else [])])
