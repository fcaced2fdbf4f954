"""What a judge is shown of the files that a run made: texts in words, images as images, others by name alone."""

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agrotools.agents.images import Preview, make_preview
from agrotools.core import Artifact
from agrotools.core.files import artifact_path
from agrotools.models import ContentPart, ImagePart, Message, TextPart
from agrotools.scoring.judging import JudgeQuestion
from agrotools.scoring.judging.questions import is_image, is_text

_LONGEST_TEXT = 12_000
"""Characters of a file; the rest is cut off, which the judge is told."""
_LONGEST_TOGETHER = 60_000
_LONGEST_CHARACTER_BYTES = 4
_DIGITS = re.compile(r"[0-9a-f]+")


class Put(NamedTuple):
    """What is sent to a judge. ``unseen``: names of images of which it gets nothing but the name."""

    messages: list[Message]
    unseen: tuple[str, ...] = ()


def put_question(question: JudgeQuestion, run: Path, *, images: bool = True) -> Put:
    """``question`` as messages, with what its attachments hold; ``images=False`` for a judge that takes none."""
    system = Message.of("system", question.system)
    if not question.attachments:
        return Put([system, Message.of("user", question.user)])
    parts: list[ContentPart] = [TextPart(text=question.user)]
    unseen: list[str] = []
    left = _LONGEST_TOGETHER
    for each in question.attachments:
        path = _place(run, each)
        if is_text(each):
            most = min(left, _LONGEST_TEXT)
            text = _text(path, most)
            left -= min(len(text or ""), most)
            parts.append(TextPart(text=_told(each, "cannot be read" if text is None else "", text, question.mark)))
        elif is_image(each):
            preview = make_preview(path, each.name, "image", None) if images and path is not None else None
            if isinstance(preview, Preview):
                parts += [TextPart(text=f"{each.name}:"), ImagePart(url=preview.url)]
            else:
                unseen.append(each.name)
                parts.append(TextPart(text=_told(each, "cannot be shown")))
    return Put([system, Message(role="user", content=tuple(parts))], tuple(unseen))


def _place(run: Path, artifact: Artifact) -> Path | None:
    """Where it lies in the run; None where the record names no such place (a run may be a stranger's)."""
    if artifact.sha256 is None or not _DIGITS.fullmatch(artifact.sha256):
        return None
    path = artifact_path(run, artifact.sha256, PurePosixPath(artifact.name).suffix)
    return None if path.is_symlink() else path


def _text(path: Path | None, most: int) -> str | None:
    """The beginning of a text file; None where it cannot be read."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            read = file.read(_LONGEST_CHARACTER_BYTES * most + 1)
    except OSError:
        return None
    text = read.decode("utf-8", errors="replace")
    return text if len(text) <= most else f"{text[:most]} [cut off here]"


def _told(artifact: Artifact, lacking: str, text: str | None = None, mark: str = "") -> str:
    return f"{artifact.name} {lacking}." if lacking else f"{artifact.name}:\n{mark}\n{text}\n{mark}"
