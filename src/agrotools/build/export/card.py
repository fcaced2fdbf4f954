"""Description of a benchmark folder: ``croissant.json``, and a dataset card, ``README.md``.

``croissant.json`` is Croissant 1.1 with the RAI vocabulary 1.0 (MLCommons). It requires three properties that a local
folder does not have: the URL of its page (by default, the card), its publication date (the day of writing, or
``SOURCE_DATE_EPOCH``), and its creator (the header's metadata may name one). The card has one example question of each
task type and no answers.
"""

import contextlib
import html
import io
import mimetypes
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from pydantic import JsonValue

from agrotools import __version__
from agrotools.benchmarks.describing import count_samples
from agrotools.core import Sample
from agrotools.core.files import read_table, sha256_of_file, write_whole
from agrotools.formats.benchmark import CARD_FILE, CROISSANT_FILE, BenchmarkHeader

_WORDS = ("absent", "dropped", "left_out", "unread")
"""Words that mark a metadata key as a record of omissions: the key is one or ends in one (``tiles_dropped``)."""


def omissions(metadata: Mapping[str, JsonValue], at: str = "") -> list[tuple[str, str]]:
    """Return omissions with their number or names, sorted: (``weedmap, tiles dropped, empty``, ``3``)."""
    found: list[tuple[str, str]] = []
    for key, value in metadata.items():
        where = f"{at}, {key}" if at else key
        if isinstance(value, dict) and not _is_omission(key):
            found += omissions(value, where)
        elif _is_omission(key):
            several = value.items() if isinstance(value, dict) else ()
            found += [(f"{where}, {reason}", as_words(what)) for reason, what in several] or [(where, as_words(value))]
    return sorted((" ".join(where.replace("_", " ").split()), text) for where, text in found if text)


def without_omissions(metadata: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the metadata without the records of omissions."""
    rest = {key: value for key, value in metadata.items() if not _is_omission(key)}
    return {key: without_omissions(value) if isinstance(value, dict) else value for key, value in rest.items()}


def as_words(value: JsonValue) -> str:
    """Format a metadata value as words."""
    if isinstance(value, list):
        return ", ".join(map(as_words, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {as_words(item)}" for key, item in sorted(value.items()))
    return "" if value is None else str(value)


def _is_omission(key: str) -> bool:
    return key in _WORDS or key.endswith(tuple(f"_{word}" for word in _WORDS))


Counted = Mapping[str, Counter[Any]]
"""Counts over samples (:func:`~agrotools.benchmarks.describing.count_samples`)."""


TERMS: dict[str, Any] = orjson.loads(files("agrotools.build.export").joinpath("croissant.json").read_bytes())
"""Fixed parts: context, record set, licences, the names that ``[metadata.rai]`` may set, and their default values."""


def rai_fields(header: BenchmarkHeader, counted: Counted) -> dict[str, Any]:
    """Return the properties ``rai:...``. Values in ``metadata.rai`` of the header override the defaults."""
    names = "; ".join(f"{source.name}{f' ({source.url})' if source.url else ''}" for source in header.sources)
    shares = [
        f"{len(counts)} {what}{'s' if len(counts) > 1 else ''}; "
        f"{100 * count / counts.total():.0f} % of samples are {most}."
        for what, counts in (("source", counted["sources"]), ("task type", counted["task_types"]))
        for most, count in counts.most_common(1)
    ]
    languages = " and ".join({"en": "English", "zh": "Chinese"}[name] for name in sorted(counted["languages"]))
    shared = TERMS["shared_files"].format(counted["families"].total(), counted["file_kinds"].total())
    described: dict[str, Any] = {
        **TERMS["rai"],
        **(defaults := TERMS["rai_of_drawings" if header.synthetic else "rai_of_photographs"]),
        "dataCollection": defaults["dataCollection"] + (f" Sources: {names}." if names else ""),
        "machineAnnotationTools": [f"agrotools {__version__} (reference calls)"],
        "dataBiases": [*shares, f"Questions are in {languages}."],
        "dataLimitations": [*defaults["dataLimitations"], shared],
    }
    if missing := omissions(header.metadata):
        listed = "; ".join(f"{where}: {what}" for where, what in missing)
        described["dataCollectionMissingData"] = f"Left out while building: {listed}"
    rai = header.metadata.get("rai")
    if isinstance(rai, Mapping):
        described |= {name: value for name, value in rai.items() if name in TERMS["rai_fields"]}
    return {f"rai:{name}": described[name] for name in TERMS["rai_fields"] if name in described}


CONFORMS_TO = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
_SAMPLES = "samples.jsonl"
_MEDIA_TYPES = {".jsonl": "application/jsonlines", ".toml": "application/toml", ".tif": "image/tiff"}


def write_croissant(folder: Path, header: BenchmarkHeader, samples: Iterable[Sample]) -> None:
    """Write ``croissant.json`` into the benchmark folder ``folder``, whose other files exist already."""
    described = croissant(folder, header, tuple(samples))
    content = orjson.dumps(described, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole(folder / CROISSANT_FILE, content)


def croissant(folder: Path, header: BenchmarkHeader, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return Croissant JSON-LD of the benchmark in ``folder``, with the SHA-256 of all files, but no gold."""
    counted = count_samples(samples)
    known = {file.path: file.sha256 for sample in samples for file in sample.files}
    paths = ["benchmark.toml", _SAMPLES, *sorted(known)]
    facts = {name: value for name in ("creator", "url") if isinstance(value := header.metadata.get(name), str)}
    begun = "SYNTHETIC, drawn by a program. " * header.synthetic
    citations = [source.citation for source in header.sources if source.citation]
    citation = f"{header.name} {header.version}, built with agrotools {__version__} after the design of AgroTools"
    sources = [
        {"@type": "CreativeWork", "name": source.name, "license": _spdx(source.licence)}
        | ({"url": source.url} if source.url else {})
        for source in header.sources
    ]
    maker = facts.get("creator", f"agrotools {__version__}, from the sources it names")
    # The form of versions that Croissant recommends has three numbers.
    short = re.fullmatch(r"\d+(\.\d+)?", header.version)
    return {
        "@context": TERMS["context"],
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": header.name,
        "description": begun + (header.description or TERMS["description"]),
        "version": header.version + ".0" * (2 - header.version.count(".") if short else 0),
        "license": _spdx(header.licence),
        "url": facts.get("url", CARD_FILE),
        "creator": {"@type": "Organization", "name": maker},
        "datePublished": _today().isoformat(),
        "citeAs": "; ".join([f"{citation} (arXiv 2605.22366)", *citations]),
        "inLanguage": sorted(counted["languages"]),
        "keywords": ["agriculture", "tool use", "multimodal models", "benchmark", *["synthetic"] * header.synthetic],
        "isBasedOn": sources,
        **rai_fields(header, counted),
        "distribution": [_file_object(folder, path, known.get(path)) for path in paths if (folder / path).is_file()],
        "recordSet": [TERMS["record_set"]],
    }


def _spdx(licence: str) -> str:
    """Return the URL of a licence listed by SPDX or Creative Commons; return others unchanged."""
    return TERMS["licences"].get(licence, {}).get("spdx", licence)


def _today() -> date:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "").strip()
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return now.date()


def _file_object(folder: Path, path: str, sha256: str | None) -> dict[str, Any]:
    place, suffix = folder / path, Path(path).suffix.lower()
    known_type = _MEDIA_TYPES.get(suffix) or mimetypes.guess_type(f"x{suffix}")[0]
    return {
        "@type": "cr:FileObject",
        "@id": quote(path),
        "name": path,
        "contentUrl": path,
        "contentSize": f"{place.stat().st_size} B",
        "encodingFormat": known_type or "application/octet-stream",
        "sha256": sha256 or sha256_of_file(place),
    }


def check_croissant(path: Path) -> list[str] | None:
    """Return errors and warnings of ``mlcroissant`` on the file; None if it is not installed."""
    try:
        import mlcroissant
    except ImportError:
        return None
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            issues = mlcroissant.Dataset(str(path)).metadata.ctx.issues
        except mlcroissant.ValidationError as error:
            return str(error).strip().splitlines()
    return sorted({*issues.errors, *issues.warnings})


_MARK = "<!-- Written by agrotools. Remove this line, and the card is no longer renewed. -->"
TEXTS = read_table(Path(__file__).with_name("card.toml"))


def write_card(
    folder: Path, header: BenchmarkHeader, samples: Iterable[Sample], front: str = "", use: str = TEXTS["use"]
) -> None:
    """Write ``README.md`` (``front``, card, ``use``), unless it is the user's own."""
    samples = tuple(samples)
    path = folder / CARD_FILE
    if path.is_file() and _MARK not in path.read_text(encoding="utf-8", errors="replace"):
        return
    counted = count_samples(samples)
    write_whole(path, (front + card_text(header, counted, samples, use)).encode())


def card_text(header: BenchmarkHeader, counted: Counted, samples: Sequence[Sample], use: str = TEXTS["use"]) -> str:
    """Return the card in Markdown."""
    parts = [
        f"# {_plain(header.name)}, version {_plain(header.version)}",
        _plain(header.description),
        TEXTS["synthetic"] if header.synthetic else "",
        "Questions on agricultural images, each with the files it is about, reference calls of tools, and scored "
        "answers. A model is meant to be evaluated on it, not trained on it.",
        "## What is in it",
        _contents(header, counted),
        "## What is asked",
        _table(("task type", "one of its questions"), _examples(samples)),
        "## Where files and labels come from",
        _sources(header, counted),
        f"Terms of use: {_plain(header.licence)}",
        _left_out(header.metadata),
        "## How it was built",
        _built(header, counted),
        "## How to use it",
        use,
        _MARK,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _contents(header: BenchmarkHeader, counted: Counted) -> str:
    def listed(counts: Mapping[Any, int]) -> str:
        return ", ".join(f"{key}{':' * isinstance(key, int)} {count}" for key, count in sorted(counts.items()))

    rows = [
        ("samples", str(counted["families"].total())),
        *((what, listed(counted[name])) for name, what in TEXTS["counts"].items()),
        ("reference calls", str(counted["tools"].total())),
        ("templates", str(len(counted["templates"]))),
        ("answerable without tools", f"{counted['no_tool'][True]} (no raster, no table, no figure to draw)"),
        ("toolset", ", ".join(header.toolset)),
    ]
    return _table(("what", "how many"), [(_plain(what), _plain(text)) for what, text in rows])


def _examples(samples: Sequence[Sample]) -> list[tuple[str, str]]:
    first: dict[str, str] = {}
    for sample in samples:
        first.setdefault(sample.task_type, sample.query)
    return [(_plain(task_type), _plain(query)) for task_type, query in sorted(first.items())]


def _sources(header: BenchmarkHeader, counted: Counted) -> str:
    rows: list[tuple[str, ...]] = []
    for source in header.sources:
        notes = " ".join(text for text in (source.citation, source.note) if text)
        count = str(counted["sources"][source.name] or "")
        rows.append((_plain(source.name), count, _plain(source.licence), _link(source.url or ""), _plain(notes)))
    listed_names = {source.name for source in header.sources}
    unnamed = sorted((name, count) for name, count in counted["sources"].items() if name not in listed_names)
    # If there is only one source, files without a listed source fall under its licence.
    licence = _plain(header.sources[0].licence) if len(header.sources) == 1 else ""
    rows += [(_plain(name), str(count), licence, "", "") for name, count in unnamed]
    return _table(("source", "samples", "licence", "where to get it", "cite, note"), rows) if rows else ""


def _left_out(metadata: Mapping[str, JsonValue]) -> str:
    lines = [f"- {_plain(where)}: {_plain(what)}" for where, what in omissions(metadata)]
    return "## What was left out\n\n" + "\n".join(lines) if lines else ""


def _built(header: BenchmarkHeader, counted: Counted) -> str:
    facts = {key: as_words(value) for key, value in without_omissions(header.metadata).items() if key != "rai"}
    rows = [(_plain(key), _plain(text)) for key, text in sorted(facts.items()) if text]
    protocol = rai_fields(header, counted)["rai:dataAnnotationProtocol"]
    answers = _plain(protocol if isinstance(protocol, str) else " ".join(protocol))
    return answers + (f"\n\n{_table(('what', 'value'), rows)}" if rows else "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def _link(url: str) -> str:
    return f"<{url}>" if re.fullmatch(r"https?://[^\s<>|]+", url) else _plain(url)


def _plain(text: str) -> str:
    """Return the text on one line, with markup escaped."""
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", html.escape(" ".join(text.split()), quote=False))
