"""Photographs with a table of labels, and a model that writes drafts of them, for tests of drafting."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web
from PIL import Image

from support.command import run_command
from support.fault_server import Body
from support.openai_server import Endpoint, completion

LEAVES = 8


def draw_leaf(share: float) -> tuple[Image.Image, float]:
    """A green leaf on white of which a part is brown, and the brown share of its pixels in percent."""
    pixels = np.full((120, 200, 3), 245, np.uint8)
    rows, columns = np.mgrid[:120, :200]
    leaf = ((columns - 100) / 80) ** 2 + ((rows - 60) / 40) ** 2 < 1
    brown = leaf & (columns < 20 + 160 * share)
    pixels[leaf] = (60, 132, 50)
    pixels[brown] = (120, 80, 40)
    return Image.fromarray(pixels), 100 * brown.sum() / leaf.sum()


def write_leaves(folder: Path, header: str = "Severity (%)", wrong: Sequence[int] = ()) -> Path:
    """Write photographs of leaves with a table of their severity; of the ``wrong`` ones the table says 90 %."""
    folder.mkdir(parents=True)
    lines = [f"Photo;{header}"]
    for number in range(1, LEAVES + 1):
        picture, percent = draw_leaf((number + 2) / 20)
        picture.save(folder / f"leaf_{number}.jpg", quality=95)
        lines.append(f"leaf_{number}.jpg;{90 if number in wrong else round(percent, 1)}")
    (folder / "scouting.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


class Author:
    """A model that writes the given replies one after the other, the last one again and again.

    ``prompts`` are the texts that it was asked with.
    """

    def __init__(self, *replies: str | dict[str, Any]) -> None:
        self._replies = [
            reply if isinstance(reply, str) else json.dumps(reply) for reply in replies
        ]
        self.prompts: list[str] = []

    def __call__(self, body: Body) -> web.Response:
        content = body["messages"][-1]["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        self.prompts.append("\n".join(part.get("text", "") for part in parts))
        place = min(len(self.prompts), len(self._replies)) - 1
        return completion(self._replies[place])


def severity_draft(question: str, **changes: Any) -> dict[str, Any]:
    """A draft that asks for the severity of the only leaf; ``changes`` replace its keys."""
    draft = {
        "question": question,
        "steps": [{"tool": "analyze_lesions", "arguments": {"image": "image_1.jpg"}}],
        "answer": [
            {
                "name": "severity",
                "label": "share of the leaf that is sick",
                "form": "number",
                "from": "@0.severity_pct",
            }
        ],
    }
    return draft | changes


def run_draft(folder: Path, out: Path, endpoint: Endpoint, *more: object) -> dict[str, Any]:
    """Run ``agrotools draft`` with one request at a time, and return what ``--json`` prints."""
    done = run_command(
        "draft",
        folder,
        "--model",
        "author",
        "--base-url",
        endpoint.base_url,
        "--out",
        out,
        "--concurrency",
        1,
        "--no-images",
        "--json",
        *more,
        OPENAI_API_KEY="none",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def numbered(question: str, count: int) -> Iterator[str]:
    """Questions in other words, with the same end."""
    beginnings = (
        "My father found this one by the gate",
        "Before we spray on Thursday I want to know",
        "The cooperative pays less for sick trees",
        "Our agronomist asks for a figure in the book",
        "A buyer sent me the picture from Huila",
        "Under the shade trees it looked worse",
        "For the insurance, please",
        "I am new to coffee and unsure",
    )
    for beginning in beginnings[:count]:
        yield f"{beginning}: {question}"
