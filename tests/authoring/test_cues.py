"""Answers that something beside the pixels tells are found and named by their channel, and sound folders are clean."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools_build.cues import find_cues
from agrotools_build.quality import check_quality
from support.benchmark_folders import HEADER
from support.plain_sample import plain_sample

NAMES = ("healthy", "leaf rust")
N_PHOTOS = 32


def _photo(path: Path, number: int, **options: Any) -> None:
    """Write a photograph of its own, whose size varies by chance as that of real ones does."""
    rng = np.random.default_rng(number)
    patches = rng.integers(0, 255, (9 + number % 5, 12, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(patches).resize((160, 120), Image.Resampling.BICUBIC)
    picture.save(path, **{"quality": 85, **options})


def _exif(text: str) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0110] = text  # Model
    return exif


Change = Callable[[dict[str, Any], str, str], dict[str, Any] | None]
"""Change of a sample of the folder, given its answer and a code for it; returns options of the picture, or None."""


def _folder(
    root: Path,
    change: Change | None = None,
    names: tuple[str, ...] = NAMES,
) -> Path:
    """Write a benchmark of questions about a photograph each, with a leak."""
    answers = [names[number % len(names)] for number in range(N_PHOTOS)]
    random.Random(1).shuffle(answers)
    lines: list[str] = []
    for number, answer in enumerate(answers):
        slot: dict[str, Any] = {"type": "exact", "name": "disease", "label": "disease"}
        slot |= {"value": answer, "choices": [*names]}
        sample: dict[str, Any] = {
            "id": f"leaf-{number:02}",
            "query": f"What does the leaf of plant {number} have?",
            "files": [{"name": "image_1.jpg", "path": f"files/{number}.jpg", "kind": "image"}],
            "family": "RR", "task_type": "crop_disease", "answer_type": "exact", "template": "leaf",
            "source": "made up", "toolset": ["calculate", "plot"], "answer": [slot], "cluster": f"{number}",
        }  # fmt: skip
        options = change(sample, answer, "QZ"[names.index(answer)]) if change else None
        file = root / "files" / f"{number}.jpg"
        tail = (options or {}).pop("tail", b"")
        _photo(file, number, **(options or {}))
        file.write_bytes(file.read_bytes() + tail)
        sample["files"][0]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(json.dumps(sample))
    (root / "benchmark.toml").write_text(HEADER)
    (root / "samples.jsonl").write_text("\n".join(lines) + "\n")
    return root


def _label(sample: dict[str, Any], answer: str, _: str) -> None:
    sample["answer"][0]["label"] = f"disease (here {answer})"


def _marked_label(sample: dict[str, Any], answer: str, code: str) -> None:
    sample["answer"][0]["label"] = "disease" if code == "Q" else "Disease"


def _query(sample: dict[str, Any], answer: str, _: str) -> None:
    sample["query"] += f" The label in the field says {answer}."


def _marked_query(sample: dict[str, Any], answer: str, code: str) -> None:
    sample["query"] += " Please." if code == "Q" else " Thanks."


def _note(sample: dict[str, Any], answer: str, code: str) -> None:
    sample["files"][0]["note"] = f"from series {code}"


def _toolset(sample: dict[str, Any], answer: str, code: str) -> None:
    sample["toolset"] = ["calculate", "plot"] if code == "Q" else ["calculate"]


def _checks_of(folder: Path) -> set[str]:
    """Return the names of the checks that find something in a folder."""
    return {finding.check for finding in check_quality(folder)}


LEAKS: dict[str, tuple[str, Change]] = {
    "gold in the label": ("answer_in_label", _label),
    "a label for each class": ("answer_from_label", _marked_label),
    "gold in the question": ("answer_in_query", _query),
    "a word of the question for each class": ("answer_from_query", _marked_query),
    "a camera for each class in EXIF": (
        "answer_from_metadata",
        lambda _sample, _answer, code: {"exif": _exif(f"cam-{code}")},
    ),
    "gold in the comment of the JPEG": (
        "answer_in_metadata",
        lambda _sample, answer, _code: {"comment": f"photo of {answer}".encode()},
    ),
    "a size of the file for each class": (
        "answer_from_file_size",
        lambda _sample, _answer, code: {"tail": b"\0" * (20_000 if code == "Q" else 9)},
    ),
    "a quality for each class": (
        "answer_from_file_format",
        lambda _sample, _answer, code: {"quality": 70 if code == "Q" else 71},
    ),
    "a note for each class": ("answer_from_note", _note),
    "a toolset for each class": ("answer_from_toolset", _toolset),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_found_and_named_by_its_channel(leak: str, tmp_path: Path):
    check, change = LEAKS[leak]
    findings = check_quality(_folder(tmp_path, change))
    assert check in {finding.check for finding in findings}


def _numbered(sample: dict[str, Any], answer: str, code: str) -> None:
    first = 2000 if code == "Q" else 2400
    sample["files"][0]["name"] = f"IMG_{first + int(sample['cluster'])}.jpg"


def _dated(sample: dict[str, Any], answer: str, code: str) -> dict[str, Any]:
    exif = Image.Exif()
    day = int(sample["cluster"]) % 10 + (1 if code == "Q" else 15)
    exif[0x0132] = f"2024:06:{day:02} 09:{sample['cluster']:0>2}:00"  # DateTime
    return {"exif": exif}


@pytest.mark.parametrize(
    ("channel", "change"), [("file_name", _numbered), ("metadata", _dated)], ids=["name", "date"]
)
def test_photos_taken_class_by_class_are_found(channel: str, change: Change, tmp_path: Path):
    folder = _folder(tmp_path, change)
    assert f"answer_from_{channel}" in _checks_of(folder)


def test_sound_folders_have_no_finding(tmp_path: Path):
    for number, names in enumerate((NAMES, ("healthy", "rust", "scab", "mildew"))):
        assert check_quality(_folder(tmp_path / str(number), names=names)) == []


def test_numbers_are_found_in_names_and_notes(tmp_path: Path):
    """A count of one digit, which may stand anywhere by chance, is a leak if it stands there again and again."""
    rng = random.Random(2)
    samples = []
    for number in range(40):
        count = rng.randint(1, 9)
        _photo(tmp_path / f"{number}.jpg", number)
        file = {"name": f"photo_{number}_{count}.jpg", "path": f"{number}.jpg", "kind": "image"}
        slot = {
            "type": "tolerance",
            "name": "count",
            "label": "apples",
            "value": count,
            "abs_tol": 0.5,
        }
        samples.append(
            plain_sample(f"s{number}", files=(file,), answer=(slot,), cluster=f"{number}")
        )
    assert {cue.channel for cue in find_cues(samples, tmp_path)} == {"file_name"}
