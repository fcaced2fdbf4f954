"""The data of a written report: overview, list, details, long texts and pictures."""

import base64
import gzip
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "link", "img", "input", "br", "hr", "line", "circle", "path"}


class Elements(HTMLParser):
    """Every element of a page with its attributes, the text of those that are not shown, and all shown text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.shown: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw.append((tag, dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            tag, attributes, text = self.raw[-1]
            self.raw[-1] = (tag, attributes, text + data)
        else:
            self.shown.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@dataclass
class ReportPage:
    """A report as its reader's browser decodes it. ``stored`` holds the content of each element with an id."""

    text: str
    elements: Elements
    stored: dict[str, str]

    @property
    def shown(self) -> str:
        """Text of the tables, which are in the page itself."""
        return "".join(self.elements.shown)

    @property
    def head(self) -> dict[str, Any]:
        return json.loads(self.stored["head"])

    @property
    def records(self) -> list[dict[str, Any]]:
        """Rows of the list."""
        index = json.loads(unpacked(self.stored["index"]))
        samples = named_rows(index["samples"])
        rows = named_rows(index["records"])
        for row in rows:
            row["mode"] = index["modes"][row["mode"]]
            row["lost"] = {index["parts"][part]: points for part, points in row["lost"]}
            sample = samples[row["sample"]]
            row["sample"] = sample["id"]
            row |= {name: sample[name] for name in ("task", "type", "query", "expected")}
        return rows

    def detail(self, row: dict[str, Any]) -> dict[str, Any]:
        return json.loads(unpacked(self.stored[f"b{row['block']}"]).split("\n")[row["line"]])

    @property
    def details(self) -> list[dict[str, Any]]:
        return [self.detail(row) for row in self.records if row["block"] is not None]

    @property
    def everything(self) -> str:
        """All that is to be read: tables, overview, list, details and long texts."""
        packed = [
            unpacked(text)
            for name, text in self.stored.items()
            if re.fullmatch(r"index|[bt]\d+", name)
        ]
        return "\n".join([self.shown, self.stored["head"], *packed])


def named_rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a list of the page by the names of its columns."""
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def unpacked(content: str) -> str:
    return gzip.decompress(base64.b64decode(content)).decode()


def read_report(page: Path | bytes) -> ReportPage:
    text = (page if isinstance(page, bytes) else page.read_bytes()).decode()
    elements = Elements(text)
    stored = {
        str(attributes["id"]): raw for _, attributes, raw in elements.raw if "id" in attributes
    }
    return ReportPage(text, elements, stored)
