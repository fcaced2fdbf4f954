"""Bench of tools on pictures that they are not made for: refused, flagged, or confident and wrong.

Figures of docs/accuracy.md, "Pictures that a tool is not made for".

    python training/cross_domain.py --data DIR --pools DIR --results FILE --out studies/results/strangers.csv

``python studies/write_accuracy.py`` puts the sums into the accuracy page.

Each kind of call (:data:`CALLS`) is made on a seeded selection of pictures from every folder of test images and every
training pool. What counts as wrong is fixed per kind of call, and follows from ``studies/accuracy/folders.toml``, which
lists what the pictures of a folder show. A wrong answer with a flag of doubt (:data:`DOUBTS`) is not confident.
Results are stored in a file of JSON lines, and a call with a stored result is not repeated.
"""

import argparse
import csv
import io
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import binomtest

from agrotools.calling import get_tool
from agrotools.calling.workspace import CallContext, call_context
from agrotools.core import ToolError, UsageError

_STUDIES = Path(__file__).resolve().parents[1] / "studies"
sys.path.append(str(_STUDIES))

from prepared import read_items  # noqa: E402

FOLDERS = _STUDIES / "accuracy" / "folders.toml"
DOUBTS = frozenset(
    "out_of_distribution uncertain low_reliability_rgb_crowns weak_detector vegetation_uncertain low_contrast "
    "false_colour_suspected implausible_heights implausible registration_uncertain different_places no_healthy_tissue "
    "grey_picture no_natural_colours leaf_outline_uncertain no_background_visible featureless_image too_dark "
    "none_well_visible no_colour pond_event_unclear scene_wide_shift mostly_no_data ranking_only "
    "wide_count_interval crop_not_given contradicts_crop low_resolution severity_too_low_possible "
    "severity_too_high_possible".split()
)
"""Flags that cast doubt on the whole answer, in contrast to flags about scale, completeness or presentation."""
NET_CALLS, OTHER_CALLS = 30, 5
"""Calls of a kind per folder: of tools that use a net, and of others."""
_COUNTED = {
    "orchard_apples": ("apple",),
    "orchard_pears": ("pear",),
    "orchard_cherries": ("cherry",),
    "neon_trees": ("trees",),
}
"""What the number of things in the truth of a folder counts."""
_LEAST_PLANTS = 0.005
"""Share of plants in a mask from which a picture holds some for certain; below it, they may be specks of the mask."""
_RASTERS = ("ndvi", "lulc", "dem", "raster")
_SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Contents:
    """Contents of the pictures of a folder, or of one of them.

    ``shows``: things that may be in them; ``holds``: things that certainly are. ``cover``: bounds of plant cover,
    percent. ``made_for``: kinds of calls that are made for them.
    """

    shows: frozenset[str]
    cover: tuple[float, float]
    made_for: frozenset[str]
    leave_out: frozenset[str]
    holds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stranger:
    """Picture of a folder. ``subject``: photograph, plant, day or leaf; pictures of one subject are not independent."""

    folder: str
    name: str
    subject: str
    read: Callable[[], bytes]
    shows: frozenset[str] | None = None
    holds: frozenset[str] = frozenset()
    """Things that people counted or marked in the picture."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one call. ``status``: refused, flagged or answered; ``wrong`` whatever the status."""

    call: str
    folder: str
    picture: str
    subject: str
    made_for: bool
    status: str
    wrong: bool
    flags: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class Call:
    """Kind of call. ``wrong`` judges a result by the contents of the folder; ``words`` is that rule in the report."""

    tool: str
    arguments: dict[str, Any]
    wrong: Callable[[Any, Contents], bool]
    words: str
    answer: Callable[[Any], object]
    takes: str = "picture"
    """``picture``; ``pair`` (also before and after); ``same`` (the picture as both); ``raster``."""
    by_net: bool = False


def _lacks(thing: str, field: str) -> Callable[[Any, Contents], bool]:
    return lambda result, contents: thing not in contents.shows and bool(getattr(result, field))


def _is_miscounted(thing: str) -> Callable[[Any, Contents], bool]:
    def wrong(result: Any, contents: Contents) -> bool:
        if result.count:
            return thing not in contents.shows
        return thing in contents.holds

    return wrong


def _best_and_score(result: Any) -> tuple[str | None, float | None]:
    score = result.candidates[0].score
    return result.best, None if score is None else round(score, 2)


def _outside(field: str) -> Callable[[Any, Contents], bool]:
    def wrong(result: Any, contents: Contents) -> bool:
        value = getattr(result, field)
        return value is not None and not contents.cover[0] <= value <= contents.cover[1]

    return wrong


def _counted(thing: str, shown_as: str | None = None, *, by_net: bool = False) -> Call:
    """Return the kind of call that counts a thing; ``shown_as``: its name in the contents of pictures."""
    words = f"counts some where there is no {thing}, or none where people found some"
    return Call(
        "count_objects",
        {"target": thing},
        _is_miscounted(shown_as or thing),
        words,
        lambda r: r.count,
        by_net=by_net,
    )


CALLS: dict[str, Call] = {
    "weed": Call(
        "identify_weed",
        {},
        lambda result, contents: bool(result.is_weed) and "weeds" not in contents.shows,
        "names a weed that is not there",
        _best_and_score,
        by_net=True,
    ),
    "diagnosis": Call(
        "diagnose_pest_disease",
        {},
        _lacks("known_leaf", "best"),
        "names a state of a leaf of a crop that is not there",
        _best_and_score,
        by_net=True,
    ),
    "diagnosis_of_bean": Call(
        "diagnose_pest_disease",
        {"crop": "bean"},
        _lacks("known_leaf", "best"),
        "names a state of a bean leaf, as the caller says, where no known leaf is",
        _best_and_score,
        by_net=True,
    ),
    "apple_count": _counted("apple", by_net=True),
    "pear_count": _counted("pear"),
    "cherry_count": _counted("cherry"),
    "crown_count": _counted("tree", "trees"),
    "plant_count": _counted("plant", "plants"),
    "lesions": Call(
        "analyze_lesions",
        {},
        lambda _result, contents: "leaf" not in contents.shows,
        "gives a severity where no leaf is in focus",
        lambda result: round(result.severity_pct, 1),
    ),
    "plant_cover": Call(
        "measure_crop_weed_area", {}, _outside("veg_pct"), "outside the bounds of cover", lambda r: round(r.veg_pct, 1)
    ),
    "region_cover": Call(
        "describe_region", {}, _outside("vegetation_pct"), "outside the bounds of cover", lambda r: r.vegetation_pct
    ),
    "phenotype": Call(
        "measure_weed_phenotype", {}, _lacks("plants", "n_plants"), "measures plants without any", lambda r: r.n_plants
    ),
    "fruit_size": Call(
        "measure_fruit_size",
        {"distance_mm": 1000, "fx_px": 1000},
        _lacks("fruit", "n_measured"),
        "measures fruit without any",
        lambda result: (result.n_measured, result.mean_diameter_mm),
    ),
    "marks": Call(
        "extract_marked_region", {}, _lacks("marks", "regions"), "finds marks that nobody drew",
        lambda result: len(result.regions),
    ),
    "same_picture": Call(
        "detect_change", {}, lambda result, _: result.changed is True, "change from a picture to itself",
        lambda result: result.change_pct, takes="same",
    ),
    "other_place": Call(
        "detect_change", {}, lambda result, _: result.changed is not None, "change between two different places",
        lambda result: result.change_pct, takes="pair",
    ),
    "canopy": Call(
        "estimate_canopy_height", {"gsd_m": 10.0}, lambda _result, contents: "heights" not in contents.shows,
        "heights of what is not height above ground", lambda result: result.max_m, takes="raster",
    ),
    "crowns_in_heights": Call(
        "count_objects", {"target": "tree", "mode": "crown_chm", "gsd_m": 10.0}, _lacks("heights", "count"),
        "trees in what is not height above ground", lambda result: result.count, takes="raster",
    ),
}  # fmt: skip
"""Kinds of calls by name."""


def read_contents() -> dict[str, dict[str, Contents]]:
    """Return the contents of folders and of pools by name."""
    text = FOLDERS.read_text(encoding="utf-8")
    return {
        kind: {
            name: Contents(
                frozenset(one["shows"]),
                (one["cover"][0], one["cover"][1]),
                frozenset(one.get("made_for", ())),
                frozenset(one.get("leave_out", ())),
            )
            for name, one in folders.items()
        }
        for kind, folders in tomllib.loads(text).items()
    }


def read_outcomes(results: Path) -> list[Outcome]:
    """Return the results of a file that :func:`measure` wrote.

    Raises:
        UsageError: the file cannot be read, or a line is not a result.
    """
    outcomes: list[Outcome] = []
    try:
        for line in results.read_text(encoding="utf-8").splitlines():
            outcomes.append(
                Outcome(**{**(fields := json.loads(line)), "flags": tuple(fields["flags"])})
            )
    except (OSError, ValueError, TypeError, KeyError) as error:
        why = f"{results} is no file of results of this script (line {len(outcomes) + 1})"
        raise UsageError(
            why, hint="remove the line that was cut off, or give another file"
        ) from error
    return outcomes


def measure(
    data: Path | None,
    pools: Path | None,
    results: Path,
    *,
    calls: Sequence[str] = (),
    folders: Sequence[str] = (),
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Make the calls that have no result in the file ``results`` yet, append theirs, and return all of the selection.

    Args:
        data: folder with a folder of test images per source.
        pools: folder of training pools: ``NAME/images.zip`` or ``images_masks.zip`` with a table of labels.
        calls: kinds of calls; default: all.
        folders: names of folders and pools; default: all.
        progress: called with one line per kind of call and folder.
    """
    before = read_outcomes(results) if results.is_file() else []
    stored = {(one.call, one.folder, one.picture): one for one in before}
    outcomes: list[Outcome] = []
    with (
        results.open("a", encoding="utf-8") as file,
        TemporaryDirectory(prefix="agrotools-cross-domain-") as scratch,
    ):
        for name, contents, pictures in _folders(data, pools):
            if folders and name not in folders:
                continue
            for kind in calls or CALLS:
                chosen = _selection(pictures, CALLS[kind], seed)
                for number, picture in enumerate(chosen):
                    outcome = stored.get((kind, name, picture.name))
                    if outcome is None:
                        beside = chosen[number - 1] if len(chosen) > 1 else None
                        outcome = _outcome(kind, contents, picture, beside, Path(scratch))
                        if outcome is None:
                            continue
                        file.write(json.dumps(asdict(outcome)) + "\n")
                        file.flush()
                    outcomes.append(outcome)
                progress(f"{kind} on {name}: {len(chosen)}")
    return outcomes


def _selection(pictures: Sequence[Stranger], call: Call, seed: int) -> list[Stranger]:
    """Return at most one picture of each subject, in a seeded order; rasters and photographs are kept apart."""
    some = [one for one in pictures if _is_raster(one) == (call.takes == "raster")]
    order = np.random.default_rng(seed).permutation(len(some))
    subjects: dict[str, Stranger] = {}
    for place in order:
        subjects.setdefault(some[place].subject, some[place])
    return list(subjects.values())[: NET_CALLS if call.by_net else OTHER_CALLS]


def _is_raster(picture: Stranger) -> bool:
    return picture.folder in ("s2_ndvi", "multiband")


def _outcome(
    kind: str, contents: Contents, picture: Stranger, beside: Stranger | None, scratch: Path
) -> Outcome | None:
    call = CALLS[kind]
    paths = [_file(picture, scratch)]
    if call.takes == "pair":
        if beside is None:
            return None
        paths.append(_file(beside, scratch))
    given: dict[str, Any] = {"image": paths[0]}
    if call.takes in ("pair", "same"):
        given = {"before": paths[0], "after": paths[-1]}
    elif call.takes == "raster":
        given = {"chm": paths[0], **({"image": paths[0]} if call.tool == "count_objects" else {})}
    # Where plants certainly cover some of a picture, it holds plants.
    plants = {"plants"} if contents.cover[0] > 0 else set[str]()
    shown = replace(contents, holds=picture.holds | plants)
    if picture.shows is not None:
        shown = replace(shown, shows=picture.shows)
    flags: tuple[str, ...] = ()
    try:
        with call_context(CallContext(keep=lambda artifact, _content: artifact)):
            result = get_tool(call.tool)(**given, **call.arguments)
    except ToolError as error:
        status, wrong, answer = "refused", False, error.kind
    else:
        flags = tuple(result.flags)
        status = "flagged" if DOUBTS & set(flags) else "answered"
        wrong, answer = call.wrong(result, shown), str(call.answer(result))
    finally:
        for path in set(paths):
            path.unlink(missing_ok=True)
    # A wrong count is an error whatever the tool is made for.
    made_for = kind in contents.made_for and not (kind.endswith("_count") and wrong)
    return Outcome(
        kind, picture.folder, picture.name, picture.subject, made_for, status, wrong, flags, answer
    )


def _file(picture: Stranger, scratch: Path) -> Path:
    path = scratch / Path(picture.name).name
    path.write_bytes(picture.read())
    return path


def _folders(
    data: Path | None, pools: Path | None
) -> Iterator[tuple[str, Contents, list[Stranger]]]:
    known = read_contents()
    for name, contents in known["folders"].items():
        folder = _skimage() if name == "skimage" else None if data is None else data / name
        if folder is not None and folder.is_dir():
            yield name, contents, list(_pictures(name, folder, contents))
    for name, contents in known["pools"].items():
        if pools is not None and (pools / name).is_dir():
            yield f"pool {name}", contents, list(_pool(name, pools / name))


def _skimage() -> Path:
    import skimage

    return Path(skimage.__file__).parent / "data"


def _pictures(name: str, folder: Path, contents: Contents) -> Iterator[Stranger]:
    if not (folder / "truth.json").is_file():
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in _SUFFIXES and path.name not in contents.leave_out:
                yield Stranger(name, path.name, path.name, path.read_bytes)
        return
    for item in read_items(folder):
        keys = (
            _RASTERS if name in ("s2_ndvi", "multiband") else ("image", "before", "after", "images")
        )
        for key in keys:
            for relative in (
                item.get(key, ()) if isinstance(item.get(key), list) else [item.get(key)]
            ):
                if relative is not None and (folder / relative).suffix.lower() in _SUFFIXES:
                    subject = relative if key in _RASTERS else _photograph(str(item["id"]), name)
                    holds = frozenset(_COUNTED.get(name, ())) if item.get("count") else frozenset()
                    read = (folder / relative).read_bytes
                    yield Stranger(name, relative, subject, read, holds=holds)


def _photograph(identity: str, folder: str) -> str:
    """Return the photograph of a tile: the number of the tile is at the end of its name."""
    return re.sub(r"_\d+$", "", identity) if folder.startswith("orchard_") else identity


def _pool(name: str, folder: Path) -> Iterator[Stranger]:
    archive = next(
        path for path in (folder / "images.zip", folder / "images_masks.zip") if path.is_file()
    )
    lists = folder / "labels.jsonl"
    if lists.is_file():
        rows = [json.loads(line) for line in lists.read_text(encoding="utf-8").splitlines()]
    else:
        rows = list(
            csv.DictReader(io.StringIO((folder / "labels.csv").read_text(encoding="utf-8")))
        )

    def reader(image: str) -> Callable[[], bytes]:
        def read() -> bytes:
            with zipfile.ZipFile(archive) as file:
                return file.read(image)

        return read

    for row in rows:
        shows, holds = None, frozenset[str]()
        if "boxes" in row:
            holds = frozenset(str(box[4]).split("_")[0] for box in row["boxes"])
            shows = frozenset({"fruit", "plants", "trees", row["label"], *holds})
        elif float(row.get("vegetation_fraction") or 0) > _LEAST_PLANTS:
            holds = frozenset({"plants"})
        read = reader(row["image"])
        yield Stranger(f"pool {name}", row["image"], row["group"], read, shows, holds)


def summarise(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Return rows of text per kind of call and folder, in the order of :data:`COLUMNS`, with their sums.

    Intervals of the share of subjects that are confident and wrong are exact (Clopper and Pearson 1934).
    """
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        cells.setdefault((one.call, one.folder), []).append(one)
        cells.setdefault(
            (one.call, "all made for" if one.made_for else "all strangers"), []
        ).append(one)
        if not one.made_for:
            cells.setdefault(("all", "all strangers"), []).append(one)
    rows = []
    order = [*CALLS, "all"]
    for (call, folder), some in sorted(
        cells.items(), key=lambda cell: (order.index(cell[0][0]), cell[0][1])
    ):
        subjects = {(one.call, one.folder, one.subject) for one in some}
        wrong = {
            (one.call, one.folder, one.subject)
            for one in some
            if one.wrong and one.status == "answered" and not one.made_for
        }
        interval = binomtest(len(wrong), len(subjects)).proportion_ci(0.95, "exact")
        statuses = [one.status for one in some]
        share = f"{100 * len(wrong) / len(subjects):.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
        made_for = folder == "all made for" or some[0].made_for
        counts = (str(statuses.count(status)) for status in ("refused", "flagged", "answered"))
        rows.append((call, folder, str(len(some)), str(len(subjects)), *counts,
                     "-" if made_for else str(len(wrong)), "made for" if made_for else share))  # fmt: skip
    return rows


COLUMNS = (
    "call",
    "folder",
    "calls",
    "subjects",
    "refused",
    "flagged",
    "answered",
    "confident and wrong",
    "share, 95 %",
)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the table of :func:`summarise` and the definitions of wrong, as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * (len(COLUMNS) - 2)]
    lines += ["| " + " | ".join(row) + " |" for row in summarise(outcomes)]
    lines += ["", "Wrong is, by kind of call:", ""]
    lines += [f"* {name} (`{call.tool}`): {call.words}" for name, call in CALLS.items()]
    return "\n".join(lines) + "\n"


def write_sums(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the sums of :func:`summarise` as CSV, with the tool of each call and the definition of wrong."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([COLUMNS[0], "tool", "wrong", *COLUMNS[1:]])
        for call, folder, *cells in summarise(outcomes):
            if folder.startswith("all "):
                known = CALLS.get(call)
                texts = ["" if cell in ("-", "made for") else cell for cell in cells]
                writer.writerow(
                    [call, *((known.tool, known.words) if known else ("", "")), folder, *texts]
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--results",
        type=Path,
        required=True,
        help="JSON lines; calls that are in it are not repeated",
    )
    parser.add_argument("--data", type=Path, help="folder with a folder of test images per source")
    parser.add_argument("--pools", type=Path, help="folder of training pools")
    parser.add_argument(
        "--call", action="append", default=[], choices=CALLS, help="only this kind of call"
    )
    parser.add_argument("--folder", action="append", default=[], help="only this folder or pool")
    parser.add_argument(
        "--out", type=Path, help="write the sums as CSV, for studies/write_accuracy.py"
    )
    given = parser.parse_args()
    outcomes = measure(
        given.data, given.pools, given.results, calls=given.call, folders=given.folder,
        progress=lambda line: print(line, file=sys.stderr),
    )  # fmt: skip
    if given.out is not None:
        write_sums(given.out, outcomes)
    print(markdown(outcomes))


if __name__ == "__main__":
    main()
