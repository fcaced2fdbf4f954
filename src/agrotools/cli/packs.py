"""``agrotools packs``: train and list the heads that tools use on this machine. They never leave the user's cache."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.json_output import print_json

app = typer.Typer(
    help="Train and list heads: small models that tools use.", no_args_is_help=True, rich_markup_mode=None
)
train = typer.Typer(help="Train heads on your own copy of a data set.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(train, name="train")


@train.command("crop-weed")
def train_crop_weed(
    data: Annotated[Path, typer.Option(help="Folder that holds cwfid/truth.json.", metavar="DIR")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train the heads that part crop from weeds, two-fold. Takes about a minute; needs the extra "train".

    No head is ever used on a picture that it was trained on.
    """
    from agrotools.vision.crop_weed import heads_folder
    from agrotools.vision.crop_weed_training import train_crop_weed_heads

    heads = train_crop_weed_heads(data, progress=lambda line: typer.echo(line, err=True))
    if as_json:
        print_json([head.model_dump(mode="json") for head in heads])
        return
    for head in heads:
        typer.echo(_line(head.name, len(head.training), head.metrics))
    typer.echo(f"written to {heads_folder()}")
    typer.echo(heads[0].licence_note)


@app.command("list")
def list_packs(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The heads on this machine: what they were trained on, under which terms, and how well they do."""
    from agrotools.core import ToolError
    from agrotools.vision.crop_weed import heads_folder, list_heads, load_head

    heads, faults = list_heads()
    for head in heads:
        try:
            load_head(head)
        except ToolError as error:
            faults.append(error.message)
    if as_json:
        print_json({"crop-weed": [head.model_dump(mode="json") for head in heads], "faults": faults})
        return
    for head in heads:
        typer.echo(_line(head.name, len(head.training), head.metrics))
        typer.echo(f"  {head.licence_note}")
    if not heads:
        typer.echo(f"no heads in {heads_folder()}; train them with: agrotools packs train crop-weed --data DIR")
    for fault in faults:
        typer.echo(f"fault: {fault}")


def _line(name: str, pictures: int, metrics: dict[str, float]) -> str:
    figures = ", ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in metrics.items())
    return f"{name}: crop-weed, {pictures} training pictures; {figures}"
