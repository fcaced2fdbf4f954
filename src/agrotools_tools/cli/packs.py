"""``agrotools tools packs``: recognisers and heads of tools, from your own pictures."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import Commands, command_group, documented, sub_command
from agrotools.cli.output import print_json, warn_of_hidden

if TYPE_CHECKING:
    from agrotools_tools.crop_weed.heads import HeadInfo
    from agrotools_tools.recognition.packs import PackInfo

app = command_group("Train and list packs: recognisers and heads that tools use on this machine.")
train = typer.Typer(cls=Commands, rich_markup_mode=None)
app.add_typer(train, name="train")


def train_pack(
    context: typer.Context,
    images: Path | None = None,
    labels: Path | None = None,
    out: str | None = None,
    hold_out: float = 0.3,
    held: Path | None = None,
    licence: str = "",
    skip_unreadable: bool = False,
    as_json: bool = False,
) -> None:
    """Train a recogniser on your own labelled pictures: tools packs train --images DIR [--labels FILE] --out PACK.

    A group (plant, day, field) is never split between learning and checking. The pack is used with the back-end
    pack:PACK of identify_weed and diagnose_pest_disease. Takes minutes; needs the extra "train".
    """
    if context.invoked_subcommand is not None:
        return
    from agrotools.core import UsageError
    from agrotools_tools.recognition.labelled_pictures import (
        LabelledImage,
        check_writable,
        label_column,
        read_labelled,
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
    folder = pack_path(out)
    warn_of_hidden([labels] if labels else [])
    pictures = read_labelled(images, labels)
    left_out: list[LabelledImage] = []
    if held is not None:
        check_writable(held, labels)
        pictures, left_out = hold_out_of(pictures, hold_out)
    info = trained(
        pictures,
        folder,
        licence_note=licence,
        skip_unreadable=skip_unreadable,
        progress=lambda line: typer.echo(line, err=True),
    )
    if held is not None:
        write_labels(held, images, left_out, label_column(labels))
    _print_figures(info, as_json, path=str(folder), held_out=len(left_out))
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
    for name, one in info.figures.by_class.items():
        typer.echo(f"  {name}: {one.n} pictures, recall {one.recall:.2f}, F1 {one.f1:.2f}")
    if info.figures.accuracy_95[0] <= info.figures.majority:
        typer.echo(
            "warning: not shown to be better than always naming the largest class: add pictures or merge classes"
        )


def _pack_line(pack: "PackInfo") -> str:
    figures = pack.figures
    low, high = figures.accuracy_95
    left_out = figures.refused_of_left_out
    refused = "" if left_out is None else f", {left_out:.2f} of unseen classes refused"
    return (
        f"{pack.name}: {len(pack.classes)} classes, {figures.pictures} pictures in {figures.groups} groups; "
        f"out of fold: accuracy {figures.accuracy:.2f} ({low:.2f} to {high:.2f}; the largest class alone "
        f"{figures.majority:.2f}), macro F1 {figures.macro_f1:.2f}{refused}"
    )


def _head_line(head: "HeadInfo") -> str:
    figures = ", ".join(
        f"{key.replace('_', ' ')} {value:.3f}" for key, value in head.metrics.items()
    )
    return f"{head.name}: crop-weed, {len(head.training)} training pictures; {figures}"
