"""Benchmark in the layout of Hugging Face datasets: a parquet file that contains the pictures, and a card.

    datasets.load_dataset(folder, split="test")[0]["images"][0]      # a PIL image

Each row is a sample, in the order of the benchmark. Pictures (``kind`` image) are in ``images`` (feature ``Image``),
all other files in ``data`` as bytes; both include the path of the file in the benchmark. Structured fields (``files``,
``answer``, ``reference``, ``declared``, ``metadata``, ``groups``, ``difficulty``) are JSON text. Files shared by
several samples are in each of their rows, but the parquet dictionary stores them once per row group.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from PIL import Image

from agrotools.core import Sample
from agrotools.core.lazy import arrow_and_parquet
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.formats.writing import replace_folder
from agrotools.loading.describing import count_samples
from agrotools.text.answer_form import answer_form
from agrotools_build.export.folder import TERMS, write_card

if TYPE_CHECKING:
    import pyarrow

EXPORT_FILE = "agrotools-export.toml"
"""File that marks an export, which a later one may replace."""
DATA_FOLDER, SPLIT = "data", "test"
_USE = """
```python
import datasets

samples = datasets.load_dataset("DIR", split="test")
samples[0]["query"], samples[0]["images"][0]      # files that are not pictures are in "data", as bytes
```

`files`, `answer`, `reference`, `metadata`, `groups` and `difficulty` are JSON."""
_ROWS = f"""configs:
- config_name: default
  data_files:
  - split: {SPLIT}
    path: {DATA_FOLDER}/{SPLIT}-*.parquet
"""
"""Part of the head of a card that tells the hub where the rows of a dataset are."""
_TEXTS = ("id", "query", "family", "task_type", "answer_type", "template", "source", "canary")
JSONS = ("files", "answer", "reference", "declared", "metadata", "groups", "difficulty")
GROUP_BYTES = 128 * 2**20
"""Approximate content of a row group, bytes; a single row may be larger."""


def export_huggingface(
    root: Path, header: BenchmarkHeader, samples: Sequence[Sample], out: Path
) -> None:
    """Write the benchmark to ``out``, completely or not at all; UsageError without pyarrow, else BenchmarkError."""
    arrow_and_parquet()
    with replace_folder(out, EXPORT_FILE, "an agrotools export in hf format") as partial:
        (partial / EXPORT_FILE).write_text('format = "hf"\n', encoding="utf-8")
        (partial / DATA_FOLDER).mkdir()
        _write_rows(partial / DATA_FOLDER / f"{SPLIT}-00000-of-00001.parquet", root, samples)
        write_card(partial, header, samples, front=front_matter(header, samples), use=_USE)


def front_matter(
    header: BenchmarkHeader, samples: Sequence[Sample], *, has_rows: bool = True
) -> str:
    """Return the YAML head of the card: licence, languages, size, and the parquet files that lie beside it unless
    ``has_rows`` is false. Strings are JSON, valid YAML."""
    languages = sorted(count_samples(samples)["languages"])
    sizes = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
    size = next((name for most, name in sizes if len(samples) < most), "100K<n<1M")
    tags = ["agriculture", "tool-use", "agents", "benchmark", *["synthetic"] * header.synthetic]
    known = TERMS["licences"].get(header.licence, {}).get("huggingface")
    licence = known or "other\nlicense_name: terms-of-the-sources\nlicense_link: README.md"
    return f"""---
pretty_name: {_quoted(f"{header.name} {header.version}")}
license: {licence}
language: {_quoted(languages)}
size_categories: {_quoted([size])}
task_categories: ["visual-question-answering", "image-text-to-text"]
tags: {_quoted(tags)}
{_ROWS if has_rows else ""}---

"""


def _quoted(value: Any) -> str:
    return orjson.dumps(value).decode()


def _write_rows(path: Path, root: Path, samples: Sequence[Sample]) -> None:
    arrow, parquet = arrow_and_parquet()
    schema = _schema(arrow)
    # The dictionary may be as large as a row group, so that files shared by samples are stored once.
    limit = 2 * GROUP_BYTES
    with parquet.ParquetWriter(
        path, schema, compression="zstd", dictionary_pagesize_limit=limit
    ) as writer:

        def write(rows: list[dict[str, Any]]) -> None:
            writer.write_table(
                arrow.Table.from_pylist(rows, schema=schema), row_group_size=len(rows)
            )

        rows, size = list[dict[str, Any]](), 0
        for sample in samples:
            row, n_bytes = _row(root, sample)
            if rows and size + n_bytes > GROUP_BYTES:
                write(rows)
                rows, size = [], 0
            rows.append(row)
            size += n_bytes
        if rows:
            write(rows)


def _row(root: Path, sample: Sample) -> tuple[dict[str, Any], int]:
    """Return the row of a sample, and the bytes of its files."""
    plain = sample.model_dump(mode="json", by_alias=True, exclude_none=True)
    files: dict[str, list[dict[str, Any]]] = {"images": [], "data": []}
    n_bytes = 0
    for path in dict.fromkeys(file.path for file in sample.files):
        content = (root / path).read_bytes()
        n_bytes += len(content)
        kinds = {file.kind for file in sample.files if file.path == path}
        column = "images" if kinds == {"image"} and _shows(root / path) else "data"
        files[column].append({"bytes": content, "path": path})
    row = {
        **{name: plain[name] for name in (*_TEXTS, "no_tool_eligible", "toolset")},
        "twin": sample.twin,
        "may_abstain": sample.may_abstain,
        "weight": sample.weight,
        **{name: _quoted(plain[name]) if name in plain else None for name in JSONS},
        "answer_form": answer_form(sample.answer),
        "cluster": sample.cluster,
        **files,
    }
    return row, n_bytes


def _shows(path: Path) -> bool:
    """True if Pillow, which ``datasets`` uses for pictures, can open the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                return picture.width > 0
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning):
        return False


def _schema(arrow: Any) -> "pyarrow.Schema":
    file = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    types: dict[str, Any] = {
        "id": arrow.string(),
        "query": arrow.string(),
        "images": arrow.list_(file),
        "data": arrow.list_(file),
        "answer_form": arrow.string(),
        **{name: arrow.string() for name in _TEXTS[2:]},
        "no_tool_eligible": arrow.bool_(),
        "twin": arrow.string(),
        "may_abstain": arrow.bool_(),
        "weight": arrow.float64(),
        "toolset": arrow.list_(arrow.string()),
        **{name: arrow.string() for name in JSONS},
        "cluster": arrow.string(),
    }
    texts = {"dtype": "string", "_type": "Value"}
    features: dict[str, Any] = dict.fromkeys(types, texts)
    features |= {
        # All versions of the library read a list in brackets; the newer `List` is known to some only.
        "images": [{"_type": "Image"}],
        "data": [{"bytes": {"dtype": "binary", "_type": "Value"}, "path": texts}],
        "toolset": [texts],
        "weight": {"dtype": "float64", "_type": "Value"},
        **{key: {"dtype": "bool", "_type": "Value"} for key in ("no_tool_eligible", "may_abstain")},
    }
    return arrow.schema(
        list(types.items()), metadata={"huggingface": _quoted({"info": {"features": features}})}
    )
