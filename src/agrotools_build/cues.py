"""Cues: what tells the answer of a question without a look at the picture.

For each channel that a model (or whoever reads the files) has beside the pixels, rules are learnt on some clusters of a
question group and tried on the others. A rule is plain: questions with this word, size or tool have that answer; or the
answer stands in the text. A channel is a finding if it is right more often than the constant answer of the group, by
more than chance: the exact interval of the share of clusters that it wins lies above a half.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, JpegImagePlugin

from agrotools.core import ExactSlot, Sample, Slot
from agrotools.loading.leaks import has_word
from agrotools.scoring.constants import (
    ConstantTable,
    RightAnswer,
    cluster_of,
    constant_of,
    right_answer,
    values_to_try,
)
from agrotools.scoring.statistics import lowest_share
from agrotools.text.answer_form import form_lines

CHANNELS = {
    "file_name": "the names of the files",
    "file_size": "the sizes of the files in bytes",
    "picture_size": "width and height of the pictures",
    "file_format": "format and JPEG quality of the pictures",
    "metadata": "metadata of the pictures: EXIF, comments, texts",
    "note": "the notes of the files",
    "toolset": "the tools that the question offers",
    "label": "the answer form",
    "query": "the words of the question",
}
"""Channels beside the pixels, each with what it is."""
_REMARKS = {
    "file_size": " (what is in a picture changes its size, too: spots make a JPEG file larger)",
}
"""What may explain a finding on a channel, if no one put the answer there."""
NOT_CHECKED = (
    "pixels: a mark in a corner, a border, the noise of a camera",
    "leaks that need several channels at once",
    "leaks that reveal only one of three or more answers, in folders with fewer than a few hundred questions",
    "whether a question can be answered at all",
    "open text, and charts",
    "groups of questions with fewer than 8 clusters",
    "the order and the ids of the samples, which no model sees",
    "the content of tables and rasters, and bytes after the end of a picture",
)
"""Leaks that this check does not look for, in plain words."""


def list_unchecked() -> list[str]:
    """Return what ``--quality`` does not check, for its output as JSON."""
    return [*NOT_CHECKED]


_ERROR_RATE = 0.01
"""Share of sound benchmarks in which chance may make a finding: of all groups and channels together."""
_PARTS = (2, 3, 4, 8, 16)
"""Numbers of equal parts that the values of a size are put into: each part is a cue."""
_NUMBERS_COPIED = 3
"""Numbers of a text, from the first, that are tried as the answer."""
_PRIOR = 2.0
"""Questions that a rule counts as seen beforehand, with the success of the constant: two lucky ones make no rule."""
_FEWEST = 2
"""Fewest questions of other clusters that a rule is learnt from."""
_WORD = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|[^\w\s]|_|\s{2,}|^\s|\s$")
"""Words, numbers, marks and unusual blanks; the case of letters counts."""
_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")
"""The number that a camera counts its files by: photos are often taken class by class."""
_DATES = ("DateTimeOriginal", "DateTime")
_DATE = "%Y:%m:%d %H:%M:%S"
"""Form of dates in EXIF."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
"""A number of a text that stands alone."""
_TEXT_TAGS = frozenset(
    "ImageDescription UserComment XPComment XPTitle XPSubject XPKeywords XPAuthor DocumentName Artist Copyright "
    "ImageHistory comment Comment xmp XML:com.adobe.xmp Description Title".split()
)
"""Metadata that people and programs write words into; the others hold settings of a camera, dates and places."""


class FileFacts(NamedTuple):
    """What a file tells beside its pixels."""

    size: float
    picture_size: tuple[float, ...] = ()
    file_format: str = ""
    quality: tuple[float, ...] = ()
    metadata: Mapping[str, str] = {}

    @property
    def words(self) -> str:
        """Metadata that holds words, on one line; keys that no camera writes count as well."""
        known = {*ExifTags.TAGS.values(), *ExifTags.GPSTAGS.values(), *_OF_FORMAT}
        return "; ".join(
            text for key, text in self.metadata.items() if key in _TEXT_TAGS or key not in known
        )


_OF_FORMAT = frozenset(
    "jfif jfif_version jfif_unit jfif_density dpi progressive progression adobe adobe_transform exif photoshop "
    "icc_profile gamma srgb chromaticity interlace transparency compression mp mpoffset background loop "
    "duration".split()
)
"""Entries of Pillow's ``info`` that are of the format, and no text."""


@lru_cache(maxsize=4096)
def file_facts(path: Path) -> FileFacts:
    """Return what a file tells beside its pixels; of a file that Pillow cannot read, its size."""
    try:
        size = float(path.stat().st_size)
    except OSError:
        return FileFacts(0.0)
    try:
        with Image.open(path) as picture:
            tables = getattr(picture, "quantization", None) or {}
            sampling = JpegImagePlugin.get_sampling(picture) if tables else ""
            return FileFacts(
                size,
                (float(picture.width), float(picture.height)),
                f"{picture.format} {picture.mode} {sampling}",
                tuple(float(sum(table)) for table in tables.values()),
                _metadata_of(picture),
            )
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return FileFacts(size)


def _metadata_of(picture: Image.Image) -> dict[str, str]:
    """Return EXIF, comments and texts of a picture by key."""
    found: dict[str, str] = {}
    for key, value in picture.info.items():
        if key not in ("exif", "icc_profile"):
            found[str(key)] = _as_text(value)
    exif = picture.getexif()
    for names, entries in (
        (ExifTags.TAGS, exif),
        (ExifTags.TAGS, exif.get_ifd(ExifTags.IFD.Exif)),
        (ExifTags.GPSTAGS, exif.get_ifd(ExifTags.IFD.GPSInfo)),
    ):
        for tag, value in entries.items():
            found[names.get(tag, str(tag))] = _as_text(value)
    return found


def _as_text(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    # The XP tags of Windows are UTF-16; their second byte is 0 for Latin letters.
    is_wide = len(value) > 1 and value[1] == 0
    return value.decode("utf-16-le" if is_wide else "utf-8", "replace").replace("\0", "")


class _Told(NamedTuple):
    """What one channel of a question tells: texts and numbers, each by its place."""

    texts: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()


def _channels_of(sample: Sample, slot: Slot, facts: Mapping[str, FileFacts]) -> dict[str, _Told]:
    files = [facts[file.path] for file in sample.files]
    choices = tuple(getattr(slot, "choices", ()))
    formed = "\n".join(form_lines((slot,)))
    return {
        "file_name": _Told(
            tuple(file.name for file in sample.files),
            _of_all([_number_in(file.name) for file in sample.files]),
        ),
        "file_size": _Told(numbers=tuple(each.size for each in files)),
        "picture_size": _Told(numbers=tuple(side for each in files for side in each.picture_size)),
        "file_format": _Told(
            tuple(each.file_format for each in files),
            tuple(number for each in files for number in each.quality),
        ),
        "metadata": _Told(
            tuple(
                "; ".join(f"{key}: {text}" for key, text in each.metadata.items()) for each in files
            ),
            _of_all([_time_of(each.metadata) for each in files]),
        ),
        "note": _Told(tuple(file.note or "" for file in sample.files)),
        "toolset": _Told((" ".join(sorted(sample.toolset)), " ".join(sample.toolset))),
        "label": _Told((slot.label, slot.name, formed, *choices[:1], *choices[-1:])),
        "query": _Told((sample.query,)),
    }


def _of_all(numbers: Sequence[float | None]) -> tuple[float, ...]:
    """Return the numbers; none if a file lacks its own, because numbers go by the place of their file."""
    found = tuple(number for number in numbers if number is not None)
    return found if len(found) == len(numbers) else ()


def _number_in(name: str) -> float | None:
    """Return the last number in the name of a file."""
    number = _LAST_NUMBER.search(Path(name).stem)
    return float(number[0]) if number else None


def _time_of(metadata: Mapping[str, str]) -> float | None:
    """Return the time at which a picture was taken, in seconds."""
    for key in _DATES:
        with suppress(ValueError):
            return datetime.strptime(metadata.get(key, ""), _DATE).replace(tzinfo=UTC).timestamp()
    return None


class _Item(NamedTuple):
    """A slot of a sample that has a right answer."""

    sample: Sample
    slot: Slot
    answer: RightAnswer
    cluster: str
    base: float
    """Score of the constant answer of other clusters; of a guess where there is none."""


class Cue(NamedTuple):
    """A channel that tells answers of a group of questions."""

    channel: str
    group: str
    """Template or task type; empty if all groups together show it."""
    example: str
    """Id of the first sample."""
    n: int
    right: float
    base: float
    gain: float
    """Lower bound of the share of clusters that it wins, less those that it loses."""

    def sentence(self) -> str:
        """Return what the channel tells, and how sure that is."""
        where = f"{self.group}: " if self.group else ""
        return (
            f"{where}from {CHANNELS[self.channel]} alone, {100 * self.right:.0f} % of {self.n} questions are answered "
            f"right on other clusters, by the constant answer {100 * self.base:.0f} %; the true gain is at least "
            f"{100 * self.gain:.0f} points{_REMARKS.get(self.channel, '')}"
        )


def find_cues(samples: Sequence[Sample], root: Path) -> list[Cue]:
    """Return the channels that tell answers, each with the groups of questions where they do."""
    paths = {file.path for sample in samples for file in sample.files}
    facts = {path: file_facts(root / path) for path in paths}
    tried: dict[str, list[tuple[str, Sequence[_Item], NDArray[np.float64]]]] = defaultdict(list)
    for group, items in _groups(samples):
        told = [_channels_of(each.sample, each.slot, facts) for each in items]
        for channel in CHANNELS:
            scores = _scores(items, [each[channel] for each in told])
            if scores is not None:
                tried[channel].append((group, items, scores))
    n_tests = sum(map(len, tried.values())) + len(tried)
    cues: list[Cue] = []
    for channel, groups in tried.items():
        of_groups = [
            _cue(channel, group, items, scores, n_tests) for group, items, scores in groups
        ]
        found = [cue for cue in of_groups if cue is not None]
        if not found and len(groups) > 1:
            everything = [item for _, items, _ in groups for item in items]
            together = np.concatenate([scores for _, _, scores in groups])
            cue = _cue(channel, "", everything, together, n_tests)
            found = [cue] if cue is not None else []
        cues += found
    return cues


def _groups(samples: Sequence[Sample]) -> Iterator[tuple[str, list[_Item]]]:
    """Yield the questions that share a constant answer, by template, or by task type where templates are small."""
    table = ConstantTable()
    for sample in samples:
        table.add(sample)
    groups: dict[tuple[str, str, str], list[_Item]] = defaultdict(list)
    for sample in samples:
        for slot in sample.answer:
            answer = right_answer(slot)
            if answer is None:
                continue
            cluster = cluster_of(sample)
            of_slot = table.groups_of(sample, slot)
            is_large = [each.is_large for each in of_slot]
            if not any(is_large):
                continue
            name = sample.template if is_large[0] and sample.template else sample.task_type
            value = constant_of(of_slot, answer, cluster)
            n_choices = len(answer.offered) if isinstance(answer.offered, tuple) else answer.offered
            guess = 1 / n_choices if n_choices and not isinstance(answer.value, tuple) else 0.0
            base = guess if value is None else float(answer.is_met_by(value))
            groups[name, slot.name, slot.type].append(_Item(sample, slot, answer, cluster, base))
    for (name, _, _), items in groups.items():
        yield name, items


def _cue(
    channel: str,
    group: str,
    items: Sequence[_Item],
    scores: NDArray[np.float64],
    n_tests: int,
) -> Cue | None:
    """Return the finding on a channel; None if chance explains what it tells."""
    more: dict[str, float] = defaultdict(float)
    for item, score in zip(items, scores, strict=True):
        more[item.cluster] += float(score) - item.base
    wins = sum(each > 0 for each in more.values())
    decided = wins + sum(each < 0 for each in more.values())
    if not decided:
        return None
    level = 1 - _ERROR_RATE / n_tests
    share = lowest_share(wins, decided, level)
    if share <= 1 / 2:
        return None
    return Cue(
        channel,
        group,
        items[0].sample.id,
        len(items),
        float(scores.mean()),
        float(np.mean([item.base for item in items])),
        (2 * share - 1) * decided / len(more),
    )


def _scores(items: Sequence[_Item], told: Sequence[_Told]) -> NDArray[np.float64] | None:
    """Return the score of each question by the best rule of other clusters; None if all are told the same."""
    if len({*told}) < 2:
        return None
    tokens = _tokens(told)
    masks = {
        token: np.array([token in each for each in tokens]) for token in set[str]().union(*tokens)
    }
    copied = _copy_rules(items, told)
    answers = [item.answer for item in items]
    _, is_right = values_to_try(answers)
    right = is_right.astype(np.float64)
    clusters = np.array([item.cluster for item in items])
    scores = np.array([item.base for item in items])
    for cluster in {*clusters.tolist()}:
        outside = clusters != cluster
        usual = float(right[:, outside].sum(axis=1).max()) / max(int(outside.sum()), 1)
        for place in np.flatnonzero(~outside):
            best, score = usual, None
            for token in sorted(tokens[place]):
                seen = masks[token] & outside
                n = int(seen.sum())
                if n < _FEWEST:
                    continue
                n_right = right[:, seen].sum(axis=1)
                row = int(n_right.argmax())
                success = (float(n_right[row]) + _PRIOR * usual) / (n + _PRIOR)
                if success > best:
                    best, score = success, right[row, place]
            for values in copied:
                seen = outside & ~np.isnan(values)
                n = int(seen.sum())
                if n < _FEWEST or np.isnan(values[place]):
                    continue
                success = (float(values[seen].sum()) + _PRIOR * usual) / (n + _PRIOR)
                if success > best:
                    best, score = success, values[place]
            if score is not None:
                scores[place] = score
    return scores


def _tokens(told: Sequence[_Told]) -> list[set[str]]:
    """Return the cues of each question: its texts, their words, and the part that each number is in."""
    tokens: list[set[str]] = []
    for each in told:
        found: set[str] = set()
        for place, text in enumerate(each.texts):
            found |= {
                f"{place} is {text}",
                *(f"{place} has {word}" for word in _WORD.findall(text)),
            }
        if len(each.numbers) > 1:
            order = np.argsort(each.numbers)
            found |= {f"least at {order[0]}", f"most at {order[-1]}"}
        tokens.append(found)
    for place in range(max(len(each.numbers) for each in told)):
        there = [at for at, each in enumerate(told) if place < len(each.numbers)]
        numbers = np.array([told[at].numbers[place] for at in there])
        for parts in _PARTS:
            bounds = np.quantile(numbers, np.arange(1, parts) / parts)
            for at, part in zip(there, np.searchsorted(bounds, numbers), strict=True):
                tokens[at].add(f"{place} in {part} of {parts}")
        for at, number in zip(there, numbers.tolist(), strict=True):
            tokens[at].add(f"{place} is {number:g}")
    return tokens


def _copy_rules(items: Sequence[_Item], told: Sequence[_Told]) -> list[NDArray[np.float64]]:
    """Return for each way to copy the answer from a text whether it is right; NaN where there is nothing to copy."""
    rules: list[list[float]] = [[] for _ in range(_NUMBERS_COPIED + 2)]
    for item, each in zip(items, told, strict=True):
        text = " ".join(each.texts)
        numbers = [float(number) for number in _NUMBER.findall(text)]
        is_number = item.answer.margin is not None
        for place, rule in zip((*range(_NUMBERS_COPIED), -1), rules, strict=False):
            is_there = is_number and place < len(numbers) and bool(numbers)
            rule.append(float(item.answer.is_met_by(numbers[place])) if is_there else np.nan)
        named = _named_choice(item.slot, text)
        rules[-1].append(np.nan if named is None else float(named == item.answer.value))
    return [np.array(rule) for rule in rules]


def _named_choice(slot: Slot, text: str) -> str | None:
    """Return the only label of a slot that a text names; None if it names several, or none."""
    if not isinstance(slot, ExactSlot) or not slot.choices:
        return None
    named = [label for label in slot.choices if has_word(text, label)]
    return named[0] if len(named) == 1 else None
