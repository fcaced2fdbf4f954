"""Plan of a benchmark from a user's own photos: the meaning of each column. Stored as TOML next to the table."""

import tomllib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue, StringConstraints, ValidationError, field_validator

from agrotools.core import FrozenModel, first_error
from agrotools.core.errors import NoFileError
from agrotools.core.files import read_text
from agrotools.core.texts import count_text, counted_names
from agrotools.knowledge.foreign import english_crop
from agrotools.knowledge.words import folded
from agrotools.text import cells
from agrotools_build.export.folder import OWNERS_TERMS
from agrotools_build.own_photos.together import SHEET_COLUMNS
from agrotools_build.templates.wording import Language

_ROWS_NAMED = 5
_TEXTS_NAMED = 12
"""Photos or cells that a line names: about as many as fit on two lines."""


_NO_QUESTION = "in no question of this column"
"""Start of the reason why a photo is not asked about in a column."""


class SkippedRows:
    """Skipped rows, cells and pictures, by column (or "picture"), reason and remedy."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], list[tuple[int | None, str]]] = defaultdict(list)

    def add(
        self, what: str, reason: str, hint: str, row: int | None = None, example: str = ""
    ) -> None:
        """Count an item skipped in a column or of "picture"; ``reason`` continues its name."""
        self._found[what, reason, hint].append((row, example))

    def add_photo(self, column: str, reason: str, hint: str, photo: str) -> None:
        """Count a photo that is in no question of a column; ``reason`` is a sentence without its full stop."""
        self._found[column, f"{_NO_QUESTION}: {reason}", hint].append((None, photo))

    def lines(self) -> list[str]:
        """Return one line for each reason, the most frequent first."""
        lines: list[str] = []
        for (what, reason, hint), found in sorted(
            self._found.items(), key=lambda item: (-len(item[1]), item[0])
        ):
            texts = list(dict.fromkeys(text for _, text in found if text))
            example = f" x {texts[0]!r}" if len(texts) == 1 else ""
            some = [str(row) for row, _ in found if row is not None][:_ROWS_NAMED]
            rows = f" (row {', '.join(some)}{', ...' * (len(found) > len(some))})" if some else ""
            several = f" ({listed(texts)})" if len(texts) > 1 else ""
            if reason.startswith(_NO_QUESTION):
                photos = count_text(len(found), "photo")
                are = "is" if len(found) == 1 else "are"
                lines.append(f"{what}: {photos} ({listed(texts)}) {are} {reason}: {hint}")
                continue
            lines.append(f"{what}: {len(found)}{example}{several}{rows} {reason}: {hint}")
        return lines


def listed(texts: Sequence[str]) -> str:
    """Return texts with commas, the first ones if there are many."""
    return counted_names(texts, _TEXTS_NAMED)


Kind = Literal["number", "name", "yes"]


class Measure(FrozenModel):
    """A quantity that questions ask for, as defined in ``measures.toml``. ``least``, ``most``: plausible range."""

    name: str
    tool: str
    answer: str
    kind: Kind
    task_type: str
    unit: str | None = None
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    least: float | None = None
    most: float | None = None
    quantity: str
    quantity_zh: str
    arguments: dict[str, JsonValue] = {}
    words: tuple[str, ...]
    also: tuple[str, ...] = ()
    """Further words of a header that do not change what its column holds."""
    loose: tuple[str, ...] = ()
    """Those of ``words`` that may stand above something else, too."""
    plurals: tuple[str, ...] = ()
    """Words of things that may be counted as well as measured."""


@cache
def measures() -> dict[str, Measure]:
    """Return all measures by name."""
    return {
        name: Measure.model_validate({"name": name, **body})
        for name, body in _data("measures.toml").items()
    }


def _data(file: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(file).read_text("utf-8"))


UNDECIDED = ""
NOTHING = "nothing"
RATING = "rating"
"""Numbers of a scale, as 0 to 9, which no tool measures."""
_PLAIN = Annotated[str, StringConstraints(max_length=120, pattern=r"^[^<>\\@{}\"\[\]|\x00-\x1f]*$")]
QUESTIONS_A_PHOTO = 2
"""Questions per photo with a row, unless the owner chooses a number."""
MOST_QUESTIONS = 100
"""Largest number of questions, unless the owner chooses a number."""
_LOGICAL = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Column(FrozenModel):
    """A column, and that of a ``second`` observer.

    ``ask``: a measure, "slice" (scores by value), "rating" and "nothing" (no questions), or "" (not decided).
    """

    UNASKED: ClassVar = ("slice", RATING, NOTHING)
    SLICES: ClassVar = (
        "block",
        "day",
        "device",
        "date",
        "datum",
        "fecha",
        "地块",
        "日期",
        "设备",
        *SHEET_COLUMNS,
    )  # headers, besides words of places (PLACE_HEADERS of picture_folder)
    column: str
    second: str | None = None
    """Column of a second observer; "" if it is open whether another column of the same words is one."""
    ask: str = UNDECIDED
    unit: str | None = None
    """Unit of numbers that are written without one."""
    decimal: cells.Decimal | Literal[""] = "."
    repeated: Literal["refuse", "mean", "sum"] | None = None
    """Use of several rows of one photo, if the numbers of any photo's rows differ; None: not decided."""
    abs_tol: Annotated[float | None, Field(ge=0)] = None
    rel_tol: Annotated[float | None, Field(ge=0)] = None
    quantity: _PLAIN | None = None
    """Words for the measured quantity in questions, e.g. "the number of ripe apples"."""
    quantity_zh: _PLAIN | None = None
    target: _PLAIN | None = None
    objects: _PLAIN | None = None
    objects_zh: _PLAIN | None = None
    rows_behind: Literal["counted", "not-counted"] | None = None
    """Whether fruit of the rows behind is counted; None: the questions do not say it."""
    crop: _PLAIN | None = None
    names: dict[str, _PLAIN] = {}
    """Names in the table that the knowledge base lacks, each with the known name that it means, "nothing", or itself:
    it is then kept, although no tool can return it."""
    unknown_names: Literal["kept", "left-out"] | None = None
    """What becomes of names that the knowledge base and :attr:`names` lack; None: each is asked about."""
    mode: Literal["leaf", "field"] | None = None
    gsd_m: _LOGICAL | None = None
    px_per_cm: _LOGICAL | None = None
    marker_cm: _LOGICAL | None = None
    distance_mm: _LOGICAL | None = None
    fx_px: _LOGICAL | None = None
    yes_means: _PLAIN | None = None
    yes_means_zh: _PLAIN | None = None
    yes: tuple[str, ...] = cells.YES
    no: tuple[str, ...] = cells.NO

    @field_validator("ask")
    @classmethod
    def _known(cls, ask: str) -> str:
        if ask not in (UNDECIDED, *cls.UNASKED, *measures()):
            raise ValueError(f"{ask!r} is not one of {', '.join((*cls.UNASKED, *measures()))}")
        return ask

    @field_validator("crop")
    @classmethod
    def _in_english(cls, crop: str | None) -> str | None:
        """Take the name of a crop in any language that the knowledge base knows."""
        return crop and (english_crop(crop) or crop)

    @property
    def is_asked(self) -> bool:
        return self.ask not in (UNDECIDED, *self.UNASKED)

    def meaning_of(self, name: str) -> str | None:
        """Return the name that a name in the table means, or None if its rows are left out."""
        meant = self._planned(name) or name
        return None if meant == NOTHING else meant

    def keeps(self, name: str) -> bool:
        """Return True if a name in the table stays as it is, whether or not the knowledge base has it."""
        planned = self._planned(name)
        if planned is None:
            return self.unknown_names == "kept"
        return folded(planned) == folded(name)

    def _planned(self, name: str) -> str | None:
        """Return what the plan says that a name means; None if it does not have the name."""
        # "Bicho Mineiro" and "bicho-mineiro" are one name, unless the plan has both.
        alike = {folded(written): meant for written, meant in self.names.items()}
        return self.names.get(name, alike.get(folded(name)))


class Plan(FrozenModel):
    """Plan for a table. ``samples`` is the maximum number of questions; None: :meth:`most_questions`. ``encoding`` and
    ``delimiter`` are detected and ``sheet`` is the first one if None; "all": all visible sheets with photos and
    answers.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")] = "my-farm"
    licence: Annotated[str, StringConstraints(min_length=1, max_length=400)] = OWNERS_TERMS
    description: str = "Questions on own photos, with answers from a table."
    images_column: str
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = ("en",)
    samples: Annotated[int | None, Field(ge=1, le=20_000)] = None
    pairs: bool = False
    """True: some questions compare photos, which then are one cluster."""
    copies: Literal["one-cluster", "apart"] = "one-cluster"
    """How photos count that are augmented copies of one photo, or nearly the same."""
    note: _PLAIN = ""
    """Context that the asker knows of every photo, e.g. "Coffee leaf on white paper"."""
    encoding: str | None = None
    delimiter: Annotated[str | None, Field(min_length=1, max_length=1)] = None
    sheet: str | None = None
    header: str | None = None
    """Rows of the table that name its columns, as "2" or "2-3"; None: as found, with all that merged cells join."""
    unnamed_rows: Literal["above", "left-out"] | None = None
    """What rows are that name no photo: further rows of the photo above them, or none."""
    photo_numbers: Literal["in-names", "left-out"] | None = None
    """What numbers are in the column of the photos: those at the end of their names."""
    attribute: str | None = None
    """Attribute of the objects in annotations of VIA that is their class."""
    groups: Literal["one-object", "each-shape"] | None = None
    """What counts in annotations whose shapes have a ``group_id``."""
    sizes: Literal["fitted", "kept", "left-out"] | None = None
    """How objects are taken whose annotated picture has another size than the photo."""
    columns: tuple[Column, ...] = ()

    def most_questions(self, n_photos: int) -> int:
        """Return the maximum number of questions: as the owner chose, else by the photos that now have a row."""
        if self.samples is not None:
            return self.samples
        return max(1, min(MOST_QUESTIONS, QUESTIONS_A_PHOTO * n_photos))

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.column == name), None)


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan as TOML with comments that explain its keys."""
    import tomli_w

    plain = plan.model_dump(mode="json", exclude_none=True)
    columns = plain.pop("columns")
    names = [column.pop("names") for column in columns]
    for column in columns:
        for name in ("yes", "no"):
            if tuple(column[name]) == getattr(cells, name.upper()):
                del column[name]
    asks = ", ".join((*measures(), *Column.UNASKED))
    text = _data("plan_head.toml")["head"].format(asks=asks) + "\n" + tomli_w.dumps(plain)
    for column, of_column in zip(columns, names, strict=True):
        text += f"\n[[columns]]\n{tomli_w.dumps(column)}"
        text += f"[columns.names]\n{tomli_w.dumps(of_column)}" if of_column else ""
    path.write_text(text, encoding="utf-8")


def read_plan(path: Path) -> Plan:
    """Read the plan in a file; BenchmarkError if it is not TOML, or has unknown keys or values."""
    hint = "correct it, or delete it to analyse the table again"
    try:
        return Plan.model_validate(tomllib.loads(read_text(path)))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NoFileError(f"the plan {path} is not TOML: {error}", hint=hint) from error
    except ValidationError as error:
        raise NoFileError(f"the plan {path}: {first_error(error)}", hint=hint) from error
