"""``agrotools tools packs``: recognisers and heads of tools, from your own pictures."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from agrotools.cli.options import Commands, command_group, documented, sub_command
from agrotools.cli.output import command_line, print_json, warn_of_hidden

if TYPE_CHECKING:
    from agrotools.core.readings import Readings
    from agrotools_tools.crop_weed.heads import HeadInfo
    from agrotools_tools.recognition.packs import PackInfo

app = command_group("Train and list packs: recognisers and heads that tools use on this machine.")
_HELD = 0.3
"""Share of each class that is held out where no other is given."""
_FEW_NAMED = 0.5
"""Share of own pictures with a name below which a warning says so."""
_MANY_STRANGERS = 0.05
"""Share of other things with a name above which a warning says so."""
_MANY_LEFT_OUT = 0.2
"""Share of the pictures of a class that was left out with a (wrong) name, from which a warning says so."""
_OWN_CROP = 0.6
"""Share of a kind with a name, where no other kind is nearer, from which it shows the crop of the pack's own pictures.

Six packs whose own crop was learnt as another thing named 0.65 to 0.75 of that kind. With their crop given, the same
packs named at most 0.47 of the nearest kind (black gram, of bean).
"""
train = typer.Typer(cls=Commands, rich_markup_mode=None)
app.add_typer(train, name="train")


def train_pack(
    context: typer.Context,
    images: Path | None = None,
    labels: Path | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    out: str | None = None,
    hold_out: float | None = None,
    held: Path | None = None,
    licence: str = "",
    shows: list[str] | None = None,
    backbone: Path | None = None,
    normalisation: Literal["imagenet", "clip", "none"] | None = None,
    other: Path | None = None,
    skip_unreadable: bool = False,
    as_json: bool = False,
) -> None:
    """Train a recogniser on your own labelled pictures: tools packs train --images DIR [--labels FILE] --out PACK.

    A group (plant, day, field) is never split between learning and checking. The pack is used with the back-end
    pack:PACK of identify_weed and diagnose_pest_disease. Takes minutes; needs the extra "train".
    """
    if context.invoked_subcommand is not None:
        return
    from agrotools.cli.reading import new_readings, print_readings
    from agrotools.core import UsageError
    from agrotools_tools.recognition.backbone import open_backbone
    from agrotools_tools.recognition.labelled_pictures import (
        LabelColumns,
        LabelledImage,
        check_writable,
        read_labelled,
        read_others,
        write_labels,
    )
    from agrotools_tools.recognition.labelled_pictures import hold_out as hold_out_of
    from agrotools_tools.recognition.pack_training import train_pack as trained
    from agrotools_tools.recognition.packs import pack_path

    if images is None or out is None:
        raise UsageError(
            "tools packs train needs --images DIR and --out PACK",
            hint="agrotools tools packs train --help",
        )
    if hold_out is not None and held is None:
        raise UsageError("--hold-out needs --held FILE, the table of what is held out")
    if normalisation is not None and backbone is None:
        raise UsageError("--normalisation is of an encoder: name it with --backbone FILE.onnx")
    folder = pack_path(out)
    encoder = None if backbone is None else open_backbone(backbone, normalisation or "imagenet")
    if encoder is not None:
        typer.echo(f"encoder {encoder.info.described()}", err=True)
    warn_of_hidden([labels] if labels else [])
    readings = new_readings(yes=False)
    columns = LabelColumns(image_column, label_column)
    pictures = read_labelled(images, labels, columns=columns, readings=readings)
    shows = shows or _ask_what_is_shown([one.label for one in pictures], readings)
    print_readings(readings)
    others = [] if other is None else read_others(other)
    left_out: list[LabelledImage] = []
    if held is not None:
        check_writable(held, labels)
        pictures, left_out = hold_out_of(pictures, _HELD if hold_out is None else hold_out)
    info = trained(
        pictures,
        folder,
        licence_note=licence,
        shows=shows,
        backbone=encoder,
        others=others,
        skip_unreadable=skip_unreadable,
        progress=lambda line: typer.echo(line, err=True),
    )
    if held is not None:
        write_labels(held, images, left_out, pictures[0].column)
    _print_figures(info, as_json, path=str(folder), held_out=len(left_out))
    if warning := _warning_of_own_crop(info, out):
        typer.echo(warning, err=as_json)
    if as_json:
        return
    typer.echo(
        f"written to {folder}; use it with: agrotools tools run TOOL --image FILE --backend pack:{out}"
    )
    if held is not None:
        counts = ", ".join(
            f"{label} {n}" for label, n in sorted(Counter(one.label for one in left_out).items())
        )
        of_all = f"{len(left_out)} of {len(pictures) + len(left_out)} pictures"
        typer.echo(f"held out: {of_all} ({counts}), listed in {held}")


def _ask_what_is_shown(labels: Sequence[str], readings: "Readings") -> list[str]:
    """Return what the pictures with these labels show: as the labels say it, or as the user does.

    Raises:
        UndecidedError: the labels do not say it, and nobody is asked.
    """
    from agrotools.knowledge.kb_names import kb_names
    from agrotools_tools.recognition.pack_subjects import question_on_shows, shown_by_labels

    classes, names = sorted(set(labels)), kb_names()
    shown = list(shown_by_labels(classes, names))
    if not shown:
        shown = [readings.choose(question_on_shows(classes, names))]
        readings.settle()
        return shown
    readings.take(f"the pictures show {', '.join(shown)}, as the labels say (else --shows)")
    return shown


train.callback(invoke_without_command=True)(documented("tools packs train", train_pack))


@sub_command(train, "tools packs train pests")
def train_pest_pack(data: Path | None = None, as_json: bool = False) -> None:
    """Train the recogniser of pests on the pictures of `benchmarks get pests`, or yours, in minutes (extra "train")."""
    from agrotools_tools.recognition.pest_photos import train_pests

    _print_figures(train_pests(data, lambda line: typer.echo(line, err=True)), as_json)


@sub_command(train, "tools packs train crop-weed")
def train_crop_weed(data: Path, as_json: bool = False) -> None:
    """Train the heads that separate crop from weeds, two-fold. Takes about a minute; needs the extra "train".

    No head is ever used on a picture that it was trained on.
    """
    from agrotools_tools.crop_weed.result import heads_folder
    from agrotools_tools.crop_weed.training import train_crop_weed_heads

    heads = train_crop_weed_heads(data, progress=lambda line: typer.echo(line, err=True))
    if as_json:
        print_json([head.model_dump(mode="json") for head in heads])
        return
    lines = [*map(_head_line, heads), f"written to {heads_folder()}", heads[0].licence_note]
    typer.echo("\n".join(lines))


@sub_command(app, "tools packs list")
def list_packs(as_json: bool = False) -> None:
    """List the packs and heads on this machine: classes, licence and accuracy."""
    from agrotools.core import ToolError
    from agrotools_tools.crop_weed.heads import list_heads, load_head
    from agrotools_tools.crop_weed.result import heads_folder
    from agrotools_tools.recognition import packs

    heads, faults = list_heads()
    for head in heads:
        try:
            load_head(head)
        except ToolError as error:
            faults.append(error.message)
    recognisers, more = packs.list_packs()
    faults += more
    if as_json:
        parts = {"packs": recognisers, "crop-weed": heads}
        rows = {
            name: [one.model_dump(mode="json") for one in every] for name, every in parts.items()
        }
        print_json({**rows, "faults": faults})
        return
    lines = [f"{_pack_line(pack)}\n  {pack.licence_note}" for pack in recognisers]
    for line in (*lines, *(f"{_head_line(head)}\n  {head.licence_note}" for head in heads)):
        typer.echo(line)
    if not recognisers:
        typer.echo(
            f"no packs in {packs.packs_folder()}; train one: agrotools tools packs train --images DIR --out NAME"
        )
    if not heads:
        typer.echo(
            f"no heads in {heads_folder()}; train them with: agrotools tools packs train crop-weed --data DIR"
        )
    for fault in faults:
        typer.echo(f"fault: {fault}")


def _print_figures(info: "PackInfo", as_json: bool, **more: object) -> None:
    if as_json:
        print_json({**info.model_dump(mode="json"), **more})
        return
    typer.echo(f"{_pack_line(info)}\n  {info.licence_note}")
    for line in _certificate(info):
        typer.echo(line)


def _certificate(info: "PackInfo") -> list[str]:
    """Return what the checks of a pack found, in lines, with warnings last."""
    from agrotools_tools.recognition import NOT_TESTED_AGAINST_LOOK_ALIKES

    figures, strangers = info.figures, info.figures.strangers
    lines = [
        f"  {name}: {one.n} pictures, recall {one.recall:.2f}, F1 {one.f1:.2f}"
        for name, one in figures.by_class.items()
    ]
    right = (
        "" if figures.right_of_named is None else f", {figures.right_of_named:.2f} of them right"
    )
    lines.append(f"own pictures: {figures.named:.2f} get a name{right}; the others are refused")
    most = sorted(strangers.by_kind.items(), key=lambda one: -one[1])[:3]
    worst = ", ".join(f"{name} {share:.2f}" for name, share in most if share > 0)
    lines.append(
        f"pictures of other things ({strangers.pictures} of {len(strangers.by_kind)} kinds, each kind left out in "
        f"turn): {strangers.named:.3f} get a name{f' (most: {worst})' if worst else ''}"
    )
    lines.append(
        f"  kinds: {', '.join(strangers.by_kind)}; the nearest to yours: {strangers.nearest}"
    )
    if strangers.not_strange:
        lines.append(f"  not counted as other things: {', '.join(strangers.not_strange)}")
    if strangers.look_alikes:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in strangers.look_alikes.items())
        lines.append(
            f"your other things, by heads that did not learn from the picture, get a name: {shares}"
        )
    else:
        lines.append(f"{NOT_TESTED_AGAINST_LOOK_ALIKES}: give pictures of them with --other DIR")
    if figures.left_out:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in figures.left_out.items())
        lines.append(f"a class that is left out of training gets a wrong name: {shares}")
    points = ", ".join(f"{one.pictures}: {one.accuracy:.2f}" for one in figures.curve)
    lines.append(f"accuracy by pictures of a class to learn from: {points}")
    lines.append(f"the built-in encoder rests on {info.rests_on}")
    if info.backbone is not None:
        lines.append(f"encoder {info.backbone.described()}")
    return lines + _warnings(info)


def _warnings(info: "PackInfo") -> list[str]:
    figures = info.figures
    warnings: list[str] = []
    if figures.accuracy_95[0] <= figures.majority:
        warnings.append(
            "warning: not shown to be better than always naming the largest class: add pictures or merge classes"
        )
    if figures.named < _FEW_NAMED:
        warnings.append(
            f"warning: only {figures.named:.2f} of your own pictures get a name: the classes are too much alike for "
            "these pictures, or too much like other things; add pictures or merge classes"
        )
    if figures.strangers.named > _MANY_STRANGERS:
        warnings.append(
            f"warning: {figures.strangers.named:.3f} of pictures of other things get a name: do not use the pack on "
            "pictures that may show something else"
        )
    if many := [name for name, share in figures.left_out.items() if share >= _MANY_LEFT_OUT]:
        warnings.append(
            f"warning: what is like {', '.join(many)}, but no class of the pack, is likely to get a wrong name: "
            "teach the pack every class that may be in front of the camera"
        )
    return warnings


def _warning_of_own_crop(info: "PackInfo", out: str) -> str | None:
    """Return a warning if a kind that was learnt as another thing is clearly what the pack's own pictures show."""
    from agrotools_tools.recognition.strangers import is_of_crop, stranger_kinds

    strangers = info.figures.strangers
    nearest = next((kind for kind in stranger_kinds() if kind.name == strangers.nearest), None)
    if nearest is None or not is_of_crop(nearest):
        return None
    named = strangers.by_kind.get(nearest.name, 0.0)
    if named < _OWN_CROP:
        return None
    crop = nearest.words[0]
    return (
        f"warning: your pictures look like {nearest.name}, which the pack has learnt to refuse as other things (a pack "
        f"that has not learnt them names {named:.2f} of them)\n  if your crop is {crop}, train again: "
        f"{_command_again(crop, out)}"
    )


def _command_again(crop: str, out: str) -> str:
    """Return the command that is running, with another crop and another name of the pack."""
    words = list[str]()
    typed = iter(sys.argv[1:])
    for word in typed:
        option, is_joined, _ = word.partition("=")
        if option not in ("--shows", "--out"):
            words.append(word)
        elif not is_joined:
            next(typed, None)
    again = f"{out.rstrip('/')}-{crop.replace(' ', '-')}"
    return command_line(*words, "--shows", crop, "--out", again)


def _crop_text(pack: "PackInfo") -> str:
    """Return what the pictures of a pack show, with the name that the knowledge base has for a crop."""
    from agrotools.knowledge.kb_names import kb_names
    from agrotools_tools.recognition.pack_subjects import crop_names

    names = kb_names()
    shown: list[str] = []
    for name in pack.shows:
        other = [crop for crop in crop_names(name, names) if crop != name.casefold()]
        shown.append(f"{name} ({', '.join(other)})" if other else name)
    return ", ".join(shown) or "not stated"


def _pack_line(pack: "PackInfo") -> str:
    figures = pack.figures
    low, high = figures.accuracy_95
    return (
        f"{pack.name}: crop {_crop_text(pack)}, {len(pack.classes)} classes, {figures.pictures} pictures in "
        f"{figures.groups} groups; "
        f"out of fold: accuracy {figures.accuracy:.2f} ({low:.2f} to {high:.2f}; the largest class alone "
        f"{figures.majority:.2f}), own pictures named {figures.named:.2f}, macro F1 {figures.macro_f1:.2f}, "
        f"other things named {figures.strangers.named:.3f}"
    )


def _head_line(head: "HeadInfo") -> str:
    figures = ", ".join(
        f"{key.replace('_', ' ')} {value:.3f}" for key, value in head.metrics.items()
    )
    return f"{head.name}: crop-weed, {len(head.training)} training pictures; {figures}"
