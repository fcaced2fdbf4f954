"""Choose the reference pictures of strangeness, and its scales and thresholds.

Makes src/agrotools_tools/data/strangeness.*.

    python training/fit_strangeness.py --pools ../shared/train --features DIR [--leave-out POOL_OR_CROP]

Known pictures come from what a net learnt from (weeds, leaves) or from the training part of a pool, and from drawn
scenes; scales and thresholds from pictures that are neither references nor learnt from; the share kept is reported on a
third part. Groups (days, photographs, leaves) are never split, except days of weeds, as in the net's own split.
Descriptions of pictures are stored in --features and computed only once (about a tenth of a second each). Pools: weeds,
fruit_boxes and leaf_disease, all CC BY or MIT. Nothing of pictures under share-alike licences is stored:
vegetation_masks sets the threshold of ``field``, one number."""

import argparse
import csv
import hashlib
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from towns import make_town

from agrotools_build.scenes.farmland import make_farmland_pair
from agrotools_build.scenes.leaf_photo import make_leaf_photo
from agrotools_build.scenes.orchard import make_orchard
from agrotools_build.scenes.pot_plants import FORMS, make_pot
from agrotools_build.scenes.rows import make_scene
from agrotools_build.scenes.stands import make_block
from agrotools_tools.recognition import NetName
from agrotools_tools.recognition.net import shipped_net
from agrotools_tools.vision.nets import pack_arrays
from agrotools_tools.vision.strangeness import (
    DomainInfo,
    Scale,
    StrangenessInfo,
    Vector,
    picture_traits,
    references_of,
    score_of,
    terms_of,
    unit_rows,
)

TARGET = Path(__file__).parent.parent / "src/agrotools_tools/data"
MOST_OF_POOL = 2000
DIRECTIONS = 48
DRAWN = 80
"""Drawn scenes of a kind, a quarter of each difficulty; their seeds are used nowhere else."""
FIRST_SEED = 740_000
WEIGHTS = {"traits": 2.0, "embedding": 1.0}
"""Weight of a description's terms; of several tried, by the errors on pools that were left out."""
EVEN = {"traits": 1.0, "embedding": 1.0, "likeness": 1.0}
"""Even weights: of leaves, likeness of twice and three times the weight errs as often on pools that were left out."""
VALIDATION = " validation"
"""End of the name of a pool's validation part, which is read as a whole."""
_WIDTH_FLOOR = 0.02
NETS: tuple[NetName, ...] = ("weeds", "leaves")
Draw = Callable[[int, Any], Any]
DRAWINGS: dict[str, Draw] = {
    "drawn orchards": lambda seed, difficulty: make_orchard(seed, difficulty),
    "drawn leaves": lambda seed, difficulty: make_leaf_photo(seed, difficulty),
    "drawn rows": lambda seed, difficulty: make_scene(seed, difficulty),
    "drawn towns": lambda seed, difficulty: make_town(seed, difficulty),
    "drawn farmland": lambda seed, difficulty: make_farmland_pair(seed, difficulty),
    "drawn trees": lambda seed, difficulty: make_block(seed, difficulty),
    "drawn pots": lambda seed, difficulty: make_pot(
        seed, difficulty, sorted(FORMS)[seed % len(FORMS)], 8.0 + 5 * (seed % 7)
    ),
}


@dataclass(frozen=True)
class Recipe:
    """Recipe of a domain. ``known``: pools of what the tool is made for; ``net``: net whose classes are named.

    ``per_class`` and ``others``: references of each class (or pool), and of each pool or crop of other things.
    ``keep``: share of held-out known pictures at or below the threshold. ``threshold_from``: pools of known pictures
    that set the threshold alone, since those of ``known`` say little of another place, or are few.
    """

    known: tuple[str, ...]
    other: tuple[str, ...]
    net: str | None = None
    per_class: int = 80
    others: int = 120
    keep: float = 0.99
    threshold_from: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)


_AERIAL = ("drawn towns", "drawn farmland", "drawn trees")
_FIELD = ("drawn rows", "drawn pots")
RECIPES = {
    "weeds": Recipe(
        ("weeds",), ("fruit_boxes", "leaf_disease", *_FIELD, *_AERIAL), "weeds", 150, keep=0.95
    ),
    "leaves": Recipe(
        ("leaf_disease",),
        ("fruit_boxes", "weeds", *_FIELD, *_AERIAL),
        "leaves",
        60,
        keep=0.97,
        threshold_from=(f"leaf_disease{VALIDATION}",),
        weights=EVEN,
    ),
    "fruit": Recipe(
        ("fruit_boxes", "drawn orchards"),
        ("weeds", "leaf_disease", *_FIELD, *_AERIAL),
        per_class=120,
        keep=0.98,
    ),
    "leaf": Recipe(
        ("leaf_disease", "drawn leaves"), ("weeds", "fruit_boxes", *_FIELD, *_AERIAL), keep=0.97
    ),
    "field": Recipe(
        ("weeds", "drawn rows", "drawn pots"),
        ("leaf_disease", "fruit_boxes"),
        per_class=150,
        keep=0.95,
        threshold_from=("vegetation_masks",),
    ),
}


@dataclass(frozen=True, eq=False)
class Pictures:
    """Described pictures of a pool: ``traits`` (n, 101), outputs by net, class, group and part."""

    traits: Vector
    embeddings: dict[str, Vector]
    logits: dict[str, Vector]
    likeness: dict[str, NDArray[np.float64]]
    labels: list[str]
    groups: list[str]
    parts: list[str]

    def __len__(self) -> int:
        return len(self.traits)

    def chosen(self, places: Sequence[int] | NDArray[Any]) -> "Pictures":
        rows = np.asarray(places, np.int64)
        return Pictures(
            self.traits[rows],
            {name: values[rows] for name, values in self.embeddings.items()},
            {name: values[rows] for name, values in self.logits.items()},
            {name: values[rows] for name, values in self.likeness.items()},
            *(
                [values[int(row)] for row in rows]
                for values in (self.labels, self.groups, self.parts)
            ),
        )


def table_of(folder: Path) -> list[dict[str, Any]]:
    """Rows of a pool with image, label, group and part; parts of weeds as in training/train_weed_net.py (seed 5)."""
    if (folder / "labels.jsonl").is_file():
        return [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    rows = list(csv.DictReader((folder / "labels.csv").open()))
    if folder.name == "weeds":
        draw, places = np.random.default_rng(5), defaultdict(list)
        for place, row in enumerate(rows):
            places[row["label"]].append(place)
        for label in sorted(places):
            order = draw.permutation(np.array(places[label]))
            ends = np.round(np.cumsum([0.8, 0.1, 0.1]) * len(order)).astype(int)
            for part, some in zip(
                ("train", "calibrate", "report"), np.split(order, ends[:-1]), strict=True
            ):
                for place in some:
                    rows[int(place)]["split"] = part
    return rows


def described(name: str, pools: Path, features: Path) -> Pictures:
    """Describe the pictures of a pool or of drawings, or read their stored descriptions."""
    stored = features / f"{name.replace(' ', '_')}.npz"
    if not stored.is_file():
        nets = {net: shipped_net(net) for net in NETS}
        columns: dict[str, list[Any]] = defaultdict(list)
        for key, pixels in _pictures(name, pools):
            columns["key"].append(key)
            columns["traits"].append(picture_traits(pixels))
            for net, one in nets.items():
                seen = one.predict(pixels)
                columns[f"{net} embedding"].append(seen.embedding[0])
                columns[f"{net} logits"].append(seen.logits[0])
                if seen.likeness is not None:
                    columns[f"{net} likeness"].append(seen.likeness[0])
        np.savez(stored, **{column: np.array(values) for column, values in columns.items()})
    with np.load(stored) as file:
        arrays = {column: file[column] for column in file.files}
    keys = [str(key) for key in arrays["key"]]
    if name in DRAWINGS:
        rows = {key: {"label": name, "group": key, "split": ("train", "calibrate", "report")[place % 4 % 3]}
                for place, key in enumerate(keys)}  # fmt: skip
    else:
        rows = {row["image"]: row for row in table_of(pools / name.removesuffix(VALIDATION))}
        _halve_validation(rows)
    return Pictures(
        arrays["traits"].astype(np.float32),
        {net: arrays[f"{net} embedding"].astype(np.float32) for net in NETS},
        {net: arrays[f"{net} logits"].astype(np.float32) for net in NETS},
        {
            net: arrays[f"{net} likeness"].astype(np.float64)
            for net in NETS
            if f"{net} likeness" in arrays
        },
        *([str(rows[key].get(field, "")) for key in keys] for field in ("label", "group", "split")),
    )


def _halve_validation(rows: dict[str, dict[str, Any]]) -> None:
    """Call half of the validation groups ``calibrate`` and the other half ``report``."""
    for row in rows.values():
        if row.get("split") == "val":
            is_odd = hashlib.sha256(str(row["group"]).encode()).digest()[0] % 2
            row["split"] = "calibrate" if is_odd else "report"


def drawn_pixels(name: str, seed: int, difficulty: int) -> NDArray[np.uint8]:
    """Draw a scene of :data:`DRAWINGS`, uint8 (rows, columns, 3)."""
    scene = DRAWINGS[name](seed, difficulty)
    images = {"rgb": scene} if isinstance(scene, np.ndarray) else scene.images
    pixels = images.get("rgb", next(iter(images.values())))
    return np.ascontiguousarray(pixels[..., :3], np.uint8)


def _pictures(name: str, pools: Path) -> Any:
    if name in DRAWINGS:
        for number in range(DRAWN):
            yield f"{number}", drawn_pixels(name, FIRST_SEED + number, number % 4)
        return
    folder = pools / name.removesuffix(VALIDATION)
    archive = next(
        path for path in (folder / "images.zip", folder / "images_masks.zip") if path.is_file()
    )
    rows = table_of(folder)
    order = np.random.default_rng(1).permutation(len(rows))[:MOST_OF_POOL]
    if name.endswith(VALIDATION):
        order = np.flatnonzero([row["split"] == "val" for row in rows])
    with zipfile.ZipFile(archive) as file:
        for place in sorted(order):
            with Image.open(io.BytesIO(file.read(rows[place]["image"]))) as picture:
                yield rows[place]["image"], np.asarray(picture.convert("RGB"))


def fit(
    domain: str, recipe: Recipe, read: Callable[[str], Pictures], leave_out: str | None = None
) -> tuple[DomainInfo, dict[str, NDArray[np.generic]]]:
    """Choose references, scales and threshold of a domain; ``leave_out`` names a pool or crop of other things."""
    draw = np.random.default_rng(7)
    pools = [read(name) for name in recipe.known]
    classes = shipped_net(recipe.net).info.classes if recipe.net else ()  # type: ignore[arg-type]

    def spread_out(some: Pictures, count: int) -> Pictures:
        """At most ``count`` pictures, groups in turn."""
        turn: dict[str, int] = defaultdict(int)
        order = []
        for place in draw.permutation(len(some)):
            order.append((turn[some.groups[place]], int(place)))
            turn[some.groups[place]] += 1
        return some.chosen([place for _, place in sorted(order, key=lambda one: one[0])[:count]])

    chosen: list[tuple[Pictures, int]] = []
    for pool in pools:
        learnt = pool.chosen([place for place, part in enumerate(pool.parts) if part == "train"])
        labels = np.array(learnt.labels)
        for label in (
            sorted(set(labels)) if recipe.net or set(labels) != set(recipe.known) else [None]
        ):
            some = learnt if label is None else learnt.chosen(np.flatnonzero(labels == label))
            chosen.append(
                (spread_out(some, recipe.per_class), classes.index(label) if recipe.net else -1)
            )
    others: list[Pictures] = []
    for name in recipe.other:
        pool = read(name)
        kinds = np.array(
            [label.split("_")[0] if name == "leaf_disease" else name for label in pool.labels]
        )
        for kind in sorted(set(kinds) - {leave_out}):
            others.append(spread_out(pool.chosen(np.flatnonzero(kinds == kind)), recipe.others))
    traits = np.concatenate([one.traits for one, _ in chosen])
    mean, width = traits.mean(axis=0), traits.std(axis=0) + _WIDTH_FLOOR
    arrays: dict[str, NDArray[np.generic]] = {
        f"{domain} mean": mean.astype(np.float32),
        f"{domain} width": width.astype(np.float32),
        f"{domain} classes": np.concatenate(
            [np.full(len(one), label, np.int16) for one, label in chosen]
        ),
    }
    directions: Vector | None = None
    if recipe.net:
        unit = unit_rows(np.concatenate([one.embeddings[recipe.net] for one, _ in chosen]))
        _, _, right = np.linalg.svd(unit, full_matrices=False)
        directions = right[:DIRECTIONS].T.astype(np.float32)
        arrays[f"{domain} directions"] = directions.astype(np.float16)
        directions = arrays[f"{domain} directions"].astype(np.float32)

    def descriptions(some: Pictures) -> dict[str, Vector]:
        found: dict[str, Vector] = {"traits": ((some.traits - mean) / width).astype(np.float32)}
        if recipe.net and directions is not None:
            found["embedding"] = unit_rows(some.embeddings[recipe.net]) @ directions
        return found

    for kind, some in (("known", [one for one, _ in chosen]), ("other", others)):
        columns = [descriptions(one) for one in some]
        for name in columns[0]:
            values = np.concatenate([one[name] for one in columns])
            step = arrays.setdefault(
                f"{domain} {name} step", np.float32(np.abs(values).max() / 127)
            )
            arrays[f"{domain} {name} {kind}"] = np.clip(np.rint(values / step), -127, 127).astype(
                np.int8
            )

    references = references_of(domain, arrays)  # type: ignore[arg-type]

    def terms(some_pools: Sequence[Pictures], *of: str) -> dict[str, NDArray[np.float64]]:
        parts: list[dict[str, NDArray[np.float64]]] = []
        for pool in some_pools:
            some = pool.chosen([place for place, one in enumerate(pool.parts) if one in of])
            labels = some.logits[recipe.net].argmax(axis=1) if recipe.net else None
            likeness = some.likeness.get(recipe.net) if recipe.net else None
            parts.append(terms_of(descriptions(some), references, labels, likeness))
        return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}

    held = terms(pools, "calibrate")
    scales = {
        name: Scale.of(values, recipe.weights[name.split()[0]]) for name, values in held.items()
    }
    elsewhere = [read(name) for name in recipe.threshold_from]
    held = terms(elsewhere, "train", "calibrate") if elsewhere else held
    threshold = float(np.quantile(score_of(held, scales), recipe.keep))
    kept = float((score_of(terms(elsewhere or pools, "report"), scales) <= threshold).mean())
    info = DomainInfo(
        classes=classes,
        threshold=round(threshold, 4),
        kept=round(kept, 4),
        known=", ".join(recipe.known),
        other=", ".join(recipe.other),
        scales=scales,
        net_sha256=shipped_net(recipe.net).info.sha256 if recipe.net else None,  # type: ignore[arg-type]
    )
    return info, arrays


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the references of strangeness.")
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument(
        "--features", type=Path, required=True, help="folder for descriptions of pictures"
    )
    parser.add_argument("--leave-out", help="pool or crop of other things that is not used")
    options = parser.parse_args()
    options.features.mkdir(parents=True, exist_ok=True)
    cache: dict[str, Pictures] = {}

    def read(name: str) -> Pictures:
        if name not in cache:
            cache[name] = described(name, options.pools, options.features)
        return cache[name]

    fitted = {
        domain: fit(domain, recipe, read, options.leave_out) for domain, recipe in RECIPES.items()
    }
    content, digest = pack_arrays(
        {name: array for _, arrays in fitted.values() for name, array in arrays.items()}
    )
    info = StrangenessInfo(
        recipe="training/fit_strangeness.py",
        licence="references from DeepWeeds, AppleBBCH81, AppleBBCH76, Pear640, CherryBBCH81, CherryBBCH72, "
        "tomato_plant, bean_disease_uganda, blackgram, chilli and citrus leaves (CC BY 4.0) and lara2018 (MIT), as "
        "histograms and embeddings only, and from our own drawings",
        sha256=digest,
        domains={domain: one for domain, (one, _) in fitted.items()},
    )
    (TARGET / "strangeness.npz").write_bytes(content)
    (TARGET / "strangeness.json").write_text(info.model_dump_json(indent=1) + "\n")
    for domain, (one, _) in fitted.items():
        print(
            f"{domain}: threshold {one.threshold}, kept {one.kept} of pictures that nothing was chosen on"
        )
    print(f"{len(content):,} bytes")


if __name__ == "__main__":
    main()
