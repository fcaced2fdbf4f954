"""Train the leaf net that ``diagnose_pest_disease`` ships: 23 kinds of leaf of five crops, one of which is no answer.

Makes src/agrotools_tools/data/nets/leaves.*.

    python training/train_leaf_net.py --pool ../shared/train --test-data ../shared/data --work DIR [--hold-out CROP]

Needs the group ``train-nets``. Learns from the pool's training split less an eighth to calibrate on, and reports on
the pool's validation split; all three hold whole groups. ``--hold-out`` trains without a crop and reports how many of
its leaves are refused, which ``--beside`` puts on the card of the net that ships. Seeds are fixed, each epoch has its
own, and ``--resume`` goes on from the last whole epoch.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from nets import calibration, pool
from nets.augment import Changes
from nets.classifying import Known, Plan
from nets.recipe import Parts, Words, begin, finish, parser_of, trained

SIDE = (160, 160)
NOT_LEARNT = ", by a net that has not learnt the crop and keeps 0.90 of those it knows"
KEEP = 0.98
"""Share of known pictures that the net keeps by its own abstention; with its strangeness it keeps 0.96."""
CROPS = ("bean", "chilli", "citrus", "coffee")
"""Crops that are named. Black gram is learnt and never named: the net takes leaves of crops that it has not learnt for
leaves of it."""
LICENCE = (
    "CC BY 4.0: bean_disease_uganda (AI-Lab-Makerere/ibean; 9bdb60d0), blackgram_plant_leaf_disease_classification "
    "(Mendeley zfcv9fmrgv; e0db47f6), chilli_leaf_classification (Mendeley tf9dtfz9m6; 4469145a), citrus_leaves "
    "(Mendeley 3f83gxmv57; f2620c09), all at github.com/ai-agriculture-circuits-and-systems; MIT: coffee leaves of "
    "github.com/esgario/lara2018 (a6c38b69; Esgario, Krohling and Ventura 2020, Computers and Electronics in "
    "Agriculture 169, 105162). Pictures of no class: DeepWeeds, CC BY 4.0 (Olsen et al. 2019, Scientific Reports 9, "
    "2058)."
)
PLAN = Plan(
    epochs=120,
    batch=32,
    rate=1.5e-3,
    mix_share=0.2,
    seed=23,
    balance=0.75,
    sides=((0.0, 112), (0.6, 128), (0.85, 144)),
    changes=Changes(scale=(0.75, 1.1), aspect=1.4, saturation=0.2, gain=0.05),
)
FAILURES = (
    "Bean: light and soil of a session go with the class; groups of look-alike pictures stand in for the unknown "
    "sessions, so a new field will do worse.",
    "Chilli: classes go with capture dates, and photographs, not dates, are kept apart: optimistic.",
    "Black gram is learnt and not named: of 64 strange leaves that got a name, 62 got one of black gram. What falls "
    "there is refused, leaves of black gram too.",
    "Citrus melanose is learnt from ten odd pictures and reported on three: take it for a hint.",
    "Coffee: a leaf may carry several stresses; the label is the predominant one.",
    "Likeness is to the pictures learnt from: a leaf of a crop it does not know may yet be taken for one it knows (see "
    "the table), and a leaf of a known crop in other light or on another ground may be refused.",
)


def uses_of(rows: list[pool.Row]) -> list[str]:
    held = pool.halves(rows, lambda row: row.part == "train", 0.125, seed=5)
    kept_back = dict.fromkeys(CROPS, "report")
    uses = [kept_back.get(row.fields["crop"], "") if row.part == "val" else "learn" for row in rows]
    return ["calibrate" if place in held else use for place, use in enumerate(uses)]


def parts_of(
    folder: Path,
    rows: list[pool.Row],
    uses: list[str],
    strange: list[pool.Row],
    held_out: str | None,
) -> Parts:
    """The pictures of ``rows`` by their uses; ``strange``: those of the crop ``held_out``."""
    names = tuple(sorted({row.label for row in rows}))
    pictures = pool.read_pictures(folder / "leaf_disease", rows, SIDE)
    classes = torch.tensor([names.index(row.label) for row in rows])

    def used(wanted: str) -> Known:
        places = torch.tensor([place for place, use in enumerate(uses) if use == wanted])
        return Known(pictures[places], classes[places])

    def others(task: str, limit: int, *labels: str) -> torch.Tensor:
        some = [row for row in pool.read_rows(folder / task) if not labels or row.label in labels]
        return pool.read_pictures(folder / task, some[:: max(1, len(some) // limit)], SIDE)

    reported = {f"{fruit} trees": others("fruit_boxes", 200, fruit) for fruit in ("pear", "cherry")}
    if held_out:
        reported[f"{held_out} leaves{NOT_LEARNT}"] = pool.read_pictures(
            folder / "leaf_disease", strange, SIDE
        )
    return Parts(
        classes=names,
        learn=used("learn"),
        calibrate=used("calibrate"),
        report=used("report"),
        unknown=others("weeds", 900),
        unknown_chosen_on=others("fruit_boxes", 250, "apple"),
        unknown_reported=reported,
        crops={
            crop: tuple(number for number, name in enumerate(names) if name.startswith(f"{crop}_"))
            for crop in CROPS
            if crop != held_out
        },
        keep=calibration.KEEP if held_out else KEEP,
    )


def main() -> None:
    parser = parser_of("Train the leaf net.", Path("build/nets"))
    parser.add_argument(
        "--hold-out", choices=CROPS, help="train without this crop, to see how well it is refused"
    )
    parser.add_argument(
        "--beside",
        type=Path,
        nargs="*",
        default=[],
        help="JSON descriptions of runs with --hold-out",
    )
    options = parser.parse_args()
    overlap = begin(options, ("leaf_disease", "weeds", "fruit_boxes"))
    refused: dict[str, Any] = {}
    for path in options.beside:
        found = json.loads(path.read_text())["abstention"]["refused"]
        refused |= {kind: one for kind, one in found.items() if kind.endswith(NOT_LEARNT)}
    plan = replace(PLAN, epochs=options.epochs or PLAN.epochs)
    rows = pool.read_rows(options.pool / "leaf_disease")
    leaves = [row for row in rows if row.fields["crop"] != options.hold_out]
    uses = uses_of(leaves)
    strange = [row for row in rows if row.fields["crop"] == options.hold_out]
    parts = parts_of(options.pool, leaves, uses, strange, options.hold_out)
    calibration = [row for row, use in zip(leaves, uses, strict=True) if use == "calibrate"]
    subjects = {
        crop: len({row.group for row in calibration if row.fields["crop"] == crop})
        for crop in parts.crops
    }
    model = trained(plan, parts, options)
    words = Words(
        name=f"leaves_without_{options.hold_out}" if options.hold_out else "leaves",
        recipe="training/train_leaf_net.py",
        what="Names the disease, pest damage or health of a leaf of bean, chilli, citrus or coffee.",
        data=f"{len(rows)} pictures of leaves, 160 pixels long (coffee 224), {len(parts.classes)} labels, five of them "
        "of black gram, which is not named.",
        licence=LICENCE,
        split="the pool's, by group (photograph, leaf or look-alike set); an eighth of its training part calibrates",
        reported="all, crop unknown",
        calibrated_on="fitted on the groups held back for it",
        failures=FAILURES,
    )
    finish(
        model,
        plan,
        parts,
        words,
        overlap,
        options,
        {},
        {"refused_beside": refused, "calibration_subjects": subjects},
    )


if __name__ == "__main__":
    main()
