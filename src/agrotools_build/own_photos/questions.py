"""Subjects and templates of one table column: pictures with their values, their names, and questions about them.

The templates of ``own.toml`` are adapted to a column: its words, its tolerances, and the field in which its tool
returns the answer.
"""

import json
import math
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from pydantic import JsonValue

from agrotools.core import SampleFile
from agrotools.core.texts import within_text
from agrotools.knowledge.countables import countables
from agrotools.knowledge.entries import Kind, KnowledgeEntry
from agrotools.knowledge.foreign import english_names
from agrotools.knowledge.kb_names import SHIPPED_LABELS, healthy_crop, healthy_label, kb_names
from agrotools.knowledge.words import folded
from agrotools.text.cells import Value
from agrotools.text.normalise import CJK
from agrotools_build.own_photos.plan import Column, Measure, Plan, measures
from agrotools_build.sources.part import named
from agrotools_build.templates import Template, Thing, load_templates
from agrotools_build.templates.slot_draft import JOINED, NAMES_OF
from agrotools_build.templates.thing import Subject
from agrotools_build.templates.wording import Language
from agrotools_tools.recognition.diagnose_pest_disease import LabelEntries, entries_of_labels
from agrotools_tools.recognition.pack_subjects import is_negative

_WEED_KINDS: tuple[Kind, ...] = ("weed", "crop")


@dataclass(frozen=True)
class ColumnNames:
    """The names in a column, resolved together: see :func:`entries_of_labels`."""

    column: Column
    labels: LabelEntries

    @classmethod
    def of(cls, column: Column, names: Iterable[str]) -> "ColumnNames":
        labels = sorted(set(names))
        if column.ask == "weed":
            entries = {name: kb_names().of_name(name, _WEED_KINDS) for name in labels}
            return cls(column, LabelEntries(entries))
        kind = column.ask if column.ask in ("disease", "pest") else "auto"
        return cls(column, entries_of_labels(labels, kind, column.crop, kb_names()))

    @cached_property
    def spelt(self) -> dict[str, str]:
        """One spelling of each thing by its key, so that two spellings are a single choice."""
        return {self.key_of(name): name for name in sorted(self.labels.entries, reverse=True)}

    def label_of(self, name: str) -> str:
        """Return the spelling that stands for all names of a thing, in questions and in tables by label."""
        return self.spelt[self.key_of(name)]

    def spellings_of(self, name: str) -> list[str]:
        """Return all names of the column that mean the same thing as ``name``."""
        key = self.key_of(name)
        return [each for each in self.labels.entries if self.key_of(each) == key]

    def key_of(self, name: str) -> str:
        """Return a key that is equal for all names of a thing, known or not: ``Red rot`` and ``red_rot`` are one."""
        best = self._best_id(name)
        return (folded(name) or name) if best == name else best

    def entry_of(self, name: str) -> KnowledgeEntry | None:
        """Return the entry of a name, or None if there is none of that kind on the crop."""
        return None if self.is_healthy(name) else self.labels.entries[name]

    def is_healthy(self, name: str) -> bool:
        return healthy_crop(name) is not None and self.column.ask != "weed"

    def is_known(self, name: str) -> bool:
        """Return True if a name means a healthy plant or no weed, or the knowledge base has it on the crop.

        As long as the crop is not known, it may be on any crop.
        """
        may_be = self.labels.crop is None and name in self.labels.unclear
        is_meant = self.is_healthy(name) or self._is_no_weed(name) or may_be
        return is_meant or self.entry_of(name) is not None

    def ids_of(self, name: str) -> tuple[str, ...]:
        """Return what the tool may call a thing: its entry, or its names in the table, the label of a pack."""
        best = self._best_id(name)
        if self.is_healthy(name):
            crop, key_of = healthy_crop(name) or self.labels.crop, kb_names().key_of_crop
            of_net = [on for on in crops_of_the_net() if not crop or key_of(on) == key_of(crop)]
            plain = ["healthy"] if self.labels.crop or not crop else []
            return tuple(dict.fromkeys((best, *(f"{on}_healthy" for on in of_net), *plain)))
        return tuple(dict.fromkeys((best, name, *self.spellings_of(name))))

    def _best_id(self, name: str) -> str:
        """Return the first thing that the tool may call a thing: its entry, a healthy plant, or the name itself."""
        if self.is_healthy(name):
            crop = healthy_crop(name) or self.labels.crop
            return str(healthy_label(name, crop))
        if self._is_no_weed(name):
            return "negative"
        entry = self.entry_of(name)
        return entry.id if entry else name

    def _is_no_weed(self, name: str) -> bool:
        return self.column.ask == "weed" and is_negative(name)

    def test_of(self, names: Iterable[str]) -> str:
        """Return the rest of an expression that tests whether the tool's answer is one of ``names``."""
        ids = dict.fromkeys(known for name in names for known in self.ids_of(name))
        return f" in [{', '.join(map(repr, ids))}]"

    def english(self, name: str) -> str:
        """Return a name as used in questions: the table's own, or the English name of one in another language."""
        if self.is_healthy(name):
            return "a healthy leaf"
        entry = self.entry_of(name)
        if entry is None:
            return _spaced(name)
        # "cercospora" is Spanish, and English as well.
        is_listed = bool(english_names(name)) and not kb_names().is_short_for(name, entry)
        is_foreign = is_listed or re.search(f"[{CJK}]", name) is not None
        return entry.names.en if is_foreign else _spaced(name)

    def chinese(self, name: str) -> str:
        if self.is_healthy(name):
            return "健康叶片"
        entry = self.entry_of(name)
        return (
            entry.names.zh[0]
            if entry and entry.names.zh and not re.search(f"[{CJK}]", name)
            else _spaced(name)
        )

    def other_names(self, name: str) -> tuple[str, ...]:
        """Return all names of what ``name`` means: each spelling of the table, and those of the knowledge base."""
        spellings = self.spellings_of(name)
        written = [each for each, known in self.column.names.items() if known in spellings]
        entry = self.entry_of(name)
        known = entry.names.all() if entry else ()
        return tuple(
            dict.fromkeys((*spellings, *written, self.english(name), self.chinese(name), *known))
        )


@cache
def crops_of_the_net() -> tuple[str, ...]:
    labels = (
        label
        for entry in kb_names().entries
        for label in entry.names.datasets.get(SHIPPED_LABELS, ())
    )
    return tuple(sorted(filter(None, map(healthy_crop, labels))))


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


_FAMILIES = {"number": ("own_number",), "name": ("own_name",), "yes": ("own_statement",)}
_LIMITS = 5


def templates_for(
    column: Column, place: int, plan: Plan, values: Sequence[float], *, counted_per_area: bool
) -> list[Template]:
    """Return the templates that suit a column, in the plan's languages.

    Columns with the same kind of measure share wordings: each, by its ``place`` among them, gets every n-th, so that no
    sentence is used twice. Limits derive from ``values``. ``counted_per_area``: counts per hectare can be computed.
    """
    measure = measures()[column.ask]
    alike = sum(
        each.is_asked and measures()[each.ask].kind == measure.kind for each in plan.columns
    )
    families = {*_FAMILIES[measure.kind]}
    if measure.name == "count":
        families |= {"own_count", "own_density"} if counted_per_area else {"own_count"}
    # A limit within the tolerance of 0 is as good as 0.
    limits = [
        limit for limit in round_limits(values) if abs(limit) >= tolerance_of(column, measure)[0]
    ]
    return [
        _of_column(template, place, alike, column, limits, language)
        for language in plan.languages
        for template in load_templates("own", language)
        if template.of in families and (limits or template.template != "own_limit")
    ]


def _of_column(
    template: Template,
    place: int,
    alike: int,
    column: Column,
    limits: Sequence[float],
    language: Language,
) -> Template:
    """Return the template for a column."""
    measure = measures()[column.ask]
    plain = json.dumps(template.model_dump(mode="json", by_alias=True))
    plain = re.sub(r"@(\d+)\.answer\b", lambda found: f"@{found[1]}.{measure.answer}", plain)
    if measure.kind == "yes":
        # Result of the tool for a photo with a yes: a diagnosis other than healthy, or ``is_weed``.
        yes = (
            r"(\1.candidates[0].kind != 'healthy')" if measure.name == "diseased" else r"\1.is_weed"
        )
        plain = re.sub(r"(@\d+)\.[\w\[\].]+ == 'statement'", yes, plain)
    if language == "zh":
        plain = re.sub(
            r"\{(one_|two_)?(option_\d|called|suspected|sought|offered|names)\}",
            r"{\1zh_\2}",
            plain,
        )
    data: dict[str, Any] = json.loads(plain)
    suffix = ("" if alike == 1 else f"_{place + 1}") + ("_zh" if language == "zh" else "")
    data |= {
        "template": f"{template.template}{suffix}",
        "of": f"own:{column.column}",
        "task_type": template.task_type if template.task_type == "plotting" else measure.task_type,
        "given": {"limit": limits} if template.template == "own_limit" else {},
        "wordings": data["wordings"][place::alike],
    }
    absolute, relative = tolerance_of(column, measure)
    for slot in data["slots"]:
        # The number of photos with a yes has a tolerance of its own.
        if measure.kind == "number":
            slot["abs_tol"], slot["rel_tol"] = (
                slot["abs_tol"] * absolute,
                slot["rel_tol"] * relative,
            )
        if slot["type"] == "tolerance" and slot["unit"] is None and measure.unit:
            slot["unit"] = measure.unit
    return Template.model_validate(data)


def tolerance_of(column: Column, measure: Measure) -> tuple[float, float]:
    """Return ``abs_tol`` and ``rel_tol`` of a column: the plan's, or else the measure's. They are never both 0."""
    if column.abs_tol is None and column.rel_tol is None:
        return measure.abs_tol, measure.rel_tol
    absolute, relative = column.abs_tol or 0.0, column.rel_tol or 0.0
    return (absolute, relative) if absolute or relative else (measure.abs_tol, measure.rel_tol)


def tolerance_text(column: Column, measure: Measure, of: str = "the true value") -> str:
    """Return how far an answer may stray, as ``within 1, or within 10 % of the true value, whichever is more``."""
    return within_text(*tolerance_of(column, measure), measure.unit, of)


_RIGHT = {
    "name": "the name in the table, or another name of the same thing",
    "yes": "the same yes or no as in the table",
}
"""What counts as a right answer, by the kind of a measure without a tolerance."""


def quantity_text(column: Column) -> str:
    """Return the words for what a column holds, as questions have them: ``the number of spots``."""
    return _common_words(column, measures()[column.ask])["quantity"]


def right_text(column: Column) -> str:
    """Return what counts as a right answer to the questions on a column."""
    measure = measures()[column.ask]
    return _RIGHT.get(measure.kind) or tolerance_text(column, measure)


def round_limits(values: Sequence[float]) -> list[float]:
    """Return up to five round numbers between the lower and the upper sixth of the values; empty if all are equal."""
    ordered = sorted(values)
    if len(ordered) < 2 or ordered[0] == ordered[-1]:
        return []
    low, high = ordered[len(ordered) // 6], ordered[-1 - len(ordered) // 6]
    limits = [_round(low + (high - low) * (k + 0.5) / _LIMITS) for k in range(_LIMITS)]
    return list(dict.fromkeys(limit for limit in limits if ordered[0] < limit < ordered[-1]))


def _round(value: float) -> float:
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    rounded = (
        round(value / (5 * step)) * 5 * step
        if abs(value) >= 10 * step * 2
        else round(value / step) * step
    )
    return float(f"{rounded:.6g}")


_MOST_TOGETHER = 4
_CLUSTERS = 10
"""Minimum number of clusters for confidence intervals."""
_OPTIONS = 4
_MOST_NAMES = 6
"""Maximum number of other names in the column that are offered as choices for several pictures."""


class Pictured(NamedTuple):
    """A picture with its value in a column, and in columns of slices."""

    file: SampleFile
    value: Value
    slices: Mapping[str, str] = {}
    name: str = ""
    """File name of the photo, which the benchmark's copy does not have."""


def grouped(
    columns_of: Mapping[str, frozenset[str]], compared: Collection[str] = ()
) -> list[list[str]]:
    """Group the hashes of pictures of the same slices and columns; samples are built from one group each, a cluster.

    A group has one picture, so that each photo is a cluster. Pictures with an answer in a ``compared`` column are
    two in a group, or four if there are enough for ten such groups. ``columns_of``: columns and slices by hash.
    """
    alike: dict[frozenset[str], list[str]] = {}
    for digest in sorted(columns_of):
        alike.setdefault(columns_of[digest], []).append(digest)
    together = _MOST_TOGETHER if len(columns_of) >= _CLUSTERS * _MOST_TOGETHER else 2
    groups: list[list[str]] = []
    for columns, members in alike.items():
        size = 1 if columns.isdisjoint(compared) else together
        groups += [members[k : k + size] for k in range(0, len(members), size)]
    return groups


def joined_clusters(clusters: Mapping[str, str], groups: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return the cluster of each picture of ``clusters``, by hash, where pictures of one group are in one cluster."""
    joined = dict(clusters)
    for group in groups:
        first, *others = dict.fromkeys(joined[digest] for digest in group if digest in joined) or [
            ""
        ]
        for digest, name in joined.items():
            joined[digest] = first if name in others else name
    return joined


def compared_columns(plan: Plan) -> set[str]:
    """Return the columns with questions about several photos: all with ``pairs``, else those of yes and no.

    A lone yes or no is guessed half of the time, so that there is no question about a single photo with one.
    """
    return {
        column.column
        for column in plan.columns
        if column.is_asked and (plan.pairs or measures()[column.ask].kind == "yes")
    }


def subjects_of(
    column: Column,
    place: int,
    pictured: Sequence[Pictured],
    groups: Sequence[Sequence[str]],
    clusters: Mapping[str, str] | None = None,
    lacking: str = "",
) -> list[Subject]:
    """Return a subject for each group with pictures of this column; ``place`` tells columns apart in their names.

    ``clusters``: name of the cluster, by hash, of pictures that share one with pictures of other groups. ``lacking``:
    why no back-end of this machine can answer the calls.
    """
    measure = measures()[column.ask]
    names = ColumnNames.of(
        column, (str(each.value) for each in pictured) if measure.kind == "name" else ()
    )
    if measure.kind == "name":
        pictured = [each._replace(value=names.label_of(str(each.value))) for each in pictured]
    by_hash = {str(each.file.sha256): each for each in pictured}
    shown_together = [
        [by_hash[digest] for digest in group if digest in by_hash] for group in groups
    ]

    def subject(number: int, group: list[Pictured]) -> Subject:
        together = _together(group, names) if measure.kind == "name" else {}

        @cache
        def shown(index: int, position: int) -> Thing:
            thing = _thing(group[index], position, names, measure)
            return replace(thing, words={**thing.words, **together}, lacking=lacking)

        metadata = {
            "column": column.column,
            "photos": {str(each.file.sha256): each.name for each in group},
        }
        named_clusters = [(clusters or {}).get(str(each.file.sha256), "") for each in group]
        return Subject(
            f"own-{place}-{number}",
            len(group),
            shown,
            metadata,
            of=f"own:{column.column}",
            groups=group[0].slices,
            cluster=next(filter(None, named_clusters), ""),
        )

    return [subject(number, group) for number, group in enumerate(shown_together) if group]


def _thing(each: Pictured, position: int, names: ColumnNames, measure: Measure) -> Thing:
    file, column = named(each.file, "image", position), names.column
    words = _common_words(column, measure)
    truth: dict[str, JsonValue]
    if measure.kind == "number":
        assert isinstance(each.value, int | float)
        truth = nested(measure.answer, int(each.value) if measure.unit is None else each.value)
        if file.gsd_m and file.width_px and file.height_px:
            words["area_ha"] = f"{file.width_px * file.height_px * file.gsd_m**2 / 10_000:.6g}"
    elif measure.kind == "name":
        truth = _named_truth(str(each.value), names)
        words |= _options(each, names)
    elif measure.name == "is_weed":
        truth = {"is_weed": bool(each.value)}
    else:
        truth = {
            "abstained": False,
            "candidates": [{"kind": "disease" if each.value else "healthy"}],
        }
    thought = _THOUGHTS.get(measure.kind, "I need {what} in {file}.").format(
        what=words["quantity"], file=file.name
    )
    arguments = arguments_of(file, measure.tool, column, measure.arguments)
    return Thing((file,), measure.tool, arguments, truth, file.name, thought, words)


def _together(group: Sequence[Pictured], names: ColumnNames) -> dict[str, str]:
    """Return words for a name to look for, drawn from the group, and for names to choose from."""
    draw = random.Random("".join(str(each.file.sha256) for each in group))
    values = [str(each.value) for each in group]
    sought = draw.choice(values)
    others = [name for name in sorted(names.spelt.values()) if name not in values]
    offered = {*values, *draw.sample(others, min(_MOST_NAMES, len(others)))}
    words = {"is_sought": names.test_of([sought]), "is_listed": names.test_of(values)}
    for prefix, spell in (("", names.english), ("zh_", names.chinese)):
        words[f"{prefix}sought"] = spell(sought)
        words[f"{prefix}names"] = JOINED.join(sorted(spell(name) for name in offered))
        for name in names.spelt.values():
            words[NAMES_OF + spell(name)] = JOINED.join(names.other_names(name))
    return words


_THOUGHTS = {
    "name": "I need to know which {what} {file} shows.",
    "yes": "I need to know whether {what} in {file}.",
}


def arguments_of(
    file: SampleFile, tool: str, column: Column, extra: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the arguments of the measuring call: the file, the target, and the plan's facts about the picture."""
    image = "chm" if tool == "estimate_canopy_height" else "image"
    marker = (
        {"type": "circle", "size_cm": column.marker_cm}
        if column.marker_cm and not column.px_per_cm
        else None
    )
    facts: dict[str, dict[str, Any]] = {
        "count_objects": {"target": column.target},
        "analyze_lesions": {"mode": column.mode},
        "diagnose_pest_disease": {"crop": column.crop},
        "measure_fruit_size": {"distance_mm": column.distance_mm},
        "measure_weed_phenotype": {
            "scale_cm_px": column.px_per_cm and float(f"{1 / column.px_per_cm:.6g}"), "scale_marker": marker
        },
    }  # fmt: skip
    return {
        image: file.name,
        **extra,
        **{name: value for name, value in facts.get(tool, {}).items() if value},
    }


def note_of(column: Column, note: str) -> str | None:
    """Return the public note on a picture: the plan's note and the scale; None if both are absent."""
    parts = [note.rstrip(". ")] if note.strip() else []
    if column.px_per_cm:
        parts.append(f"{column.px_per_cm:g} pixels are one centimetre in the plane of the plants")
    elif column.marker_cm:
        parts.append(
            f"The disc beside the plants has a diameter of {column.marker_cm:g} cm, for scale"
        )
    if column.distance_mm:
        parts.append(f"The fruits were at a distance of {column.distance_mm:g} mm from the camera")
    return ". ".join(parts) + "." if parts else None


def nested(path: str, value: JsonValue) -> dict[str, JsonValue]:
    """Return nested objects for a path: ``plants[0].height_cm`` and 12 give ``{"plants": [{"height_cm": 12}]}``."""
    nested_value: Any = value
    for part in reversed(re.findall(r"\w+|\[0\]", path)):
        nested_value = [nested_value] if part == "[0]" else {part: nested_value}
    return nested_value


def _common_words(column: Column, measure: Measure) -> dict[str, str]:
    objects = column.objects or (f"{column.target}s" if column.target else "objects")
    known = countables().get(column.target or "")
    chinese = column.objects_zh or (
        known.objects_zh if known and known.objects == objects else objects
    )
    behind, behind_zh = _ROWS_BEHIND.get(column.rows_behind or "", ("", ""))
    nouns = {"objects": f"{objects}{behind}", "objects_zh": f"{chinese}{behind_zh}"}
    yes = measure.kind == "yes"
    quantity = (column.yes_means if yes else column.quantity) or measure.quantity
    # The plan's own words stand in both languages unless the plan has Chinese ones too.
    shipped_zh = measure.quantity_zh if quantity == measure.quantity else quantity
    quantity_zh = (column.yes_means_zh if yes else column.quantity_zh) or shipped_zh
    absolute, relative = tolerance_of(column, measure)
    spoken = {"%": "percent"}.get(measure.unit or "", measure.unit)
    return {
        **nouns,
        "quantity": quantity.format(**nouns),
        "quantity_zh": quantity_zh.format(**nouns),
        "unit": f" {measure.unit}" if measure.unit else "",
        "unit_zh": measure.unit or "",
        "in_unit": f", in {spoken}" if spoken else "",
        "in_unit_zh": f"（单位：{measure.unit}）" if measure.unit else "",
        "abs_tol": f"{absolute:g}",
        "rel_tol": f"{relative:g}",
    }


_ROWS_BEHIND = {
    "counted": (" (also those of rows behind)", "（包括后排的）"),
    "not-counted": (" (without those of rows behind)", "（不包括后排的）"),
}
"""Words of a question for what the owner says of fruit in the rows behind."""


def _named_truth(name: str, names: ColumnNames) -> dict[str, JsonValue]:
    entry, best = names.entry_of(name), names.ids_of(name)[0]
    common, known = (entry.names.en, entry.id) if entry else (name, None)
    if names.column.ask == "weed":
        scientific = entry.names.sci if entry else None
        return {
            "best": best,
            "common_name": common,
            "species": scientific,
            "kb_id": known,
            "abstained": False,
        }
    kind = "healthy" if names.is_healthy(name) else entry.kind if entry else "other"
    candidate = {"label": name, "kind": kind, "common_name": common, "kb_id": known}
    return {"best": best, "abstained": False, "candidates": [candidate]}


def _options(each: Pictured, names: ColumnNames) -> dict[str, str]:
    """Return words for the name among up to three others in random order, and for a suspected name."""
    correct = str(each.value)
    draw = random.Random(str(each.file.sha256))
    others = [name for name in sorted(names.spelt.values()) if name != correct]
    offered = [correct, *draw.sample(others, min(_OPTIONS - 1, len(others)))]
    draw.shuffle(offered)
    suspected = correct if not others or draw.random() < 0.5 else draw.choice(others)
    padded = [*offered, *[correct] * _OPTIONS][:_OPTIONS]
    words = {"choices": str(len(offered)), "is": names.test_of([correct])}
    words |= {"is_suspected": names.test_of([suspected]), "is_offered": names.test_of(offered)}
    words |= {f"is_{k}": names.test_of([name]) for k, name in enumerate(padded, start=1)}
    for prefix, spell, comma, last in (
        ("", names.english, ", ", " or "),
        ("zh_", names.chinese, "、", "还是"),
    ):
        spoken = [spell(name) for name in offered]
        words |= {f"{prefix}called": spell(correct), f"{prefix}suspected": spell(suspected)}
        words[f"{prefix}offered"] = last.join(
            [comma.join(spoken[:-1]), spoken[-1]] if len(spoken) > 1 else spoken
        )
        words |= {f"{prefix}option_{k}": spell(name) for k, name in enumerate(padded, start=1)}
    return words
