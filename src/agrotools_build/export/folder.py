"""Benchmark folders: atomic writing and copying, and their description: ``croissant.json`` and a card, ``README.md``.

``croissant.json`` is Croissant 1.1 with the RAI vocabulary 1.0 (MLCommons). It requires three properties that a local
folder does not have: the URL of its page (by default, the card), its publication date (the day of writing, or
``SOURCE_DATE_EPOCH``), and its creator (the header's metadata may name one). The card (``card.md.j2``) has one example
question of each task type and no answers.
"""

import html
import mimetypes
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import quote

import orjson
from pydantic import JsonValue

from agrotools.core import Sample
from agrotools.core.files import artifact_path, sha256_of_file, write_whole
from agrotools.formats.benchmark import (
    CARD_FILE,
    CROISSANT_FILE,
    BenchmarkHeader,
    SourceNote,
    resolve_file,
)
from agrotools.formats.funnel import DRAFTS_KEY, REVIEWED_KEY, stored_funnel
from agrotools.formats.tool_check import METADATA_KEY as CHECKS_KEY
from agrotools.formats.tool_check import ToolCheck, stored_checks
from agrotools.formats.tool_labels import LABELS_KEY
from agrotools.formats.writing import replace_folder, write_samples
from agrotools.loading.describing import count_samples
from agrotools_build.answer_origin import Origin, origins_of

_SHA256 = re.compile(r"[0-9a-f]{64}")


def write_benchmark(folder: Path, header: BenchmarkHeader, samples: Sequence[Sample]) -> None:
    """Write header, samples, card and ``croissant.json`` into ``folder``, whose ``files/`` exist already.

    Every sample gets the header's canary GUID, and all offer to refuse if one of them is unanswerable.
    """
    common = {
        "canary": header.canary,
        "may_abstain": not all(sample.answerable for sample in samples),
    }
    samples = [sample.model_copy(update=common) for sample in samples]
    write_samples(folder, header, samples)
    describe_benchmark(folder, header, samples)


def describe_benchmark(folder: Path, header: BenchmarkHeader, samples: Sequence[Sample]) -> None:
    """Write card and ``croissant.json``, no part of the content hash; a user's own ``README.md`` stays."""
    write_card(folder, header, samples)
    described = croissant(folder, header, samples)
    content = orjson.dumps(described, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole(folder / CROISSANT_FILE, content)


def copy_benchmark(
    root: Path, header: BenchmarkHeader, samples: Sequence[Sample], out: Path
) -> None:
    """Copy the benchmark whose files are in ``root`` to ``out``, completely or not at all."""
    with replace_folder(out) as partial:
        copy_files(root, samples, partial)
        write_benchmark(partial, header, samples)


def copy_files(root: Path, samples: Sequence[Sample], out: Path) -> None:
    """Copy files and artifacts of ``samples`` from ``root`` to ``out``; BenchmarkError if a path leads out."""
    for path in sorted({file.path for sample in samples for file in sample.files}):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(resolve_file(root, path), out / path)
    copy_artifacts(root, samples, out)


def copy_artifacts(root: Path, samples: Iterable[Sample], out: Path) -> None:
    """Copy the existing artifacts of reference calls of ``samples`` from ``root`` to ``out``, for the review page."""
    steps = (step for sample in samples if sample.reference for step in sample.reference.steps)
    for artifact in (
        each for step in steps if step.observation for each in step.observation.artifacts
    ):
        # An invalid hash could lead out of the folder.
        if artifact.sha256 is None or not _SHA256.fullmatch(artifact.sha256):
            continue
        source, target = (
            artifact_path(folder, artifact.sha256, Path(artifact.name).suffix)
            for folder in (root, out)
        )
        if source.is_file() and not source.is_symlink() and not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, target)


_OMISSION = re.compile(r"(^|_)(absent|dropped|left_out|unread)$")
"""Metadata key of a record of omissions, such as ``tiles_dropped``."""


def omissions(metadata: Mapping[str, JsonValue], at: str = "") -> list[tuple[str, str]]:
    """Return omissions with their number or names, sorted: (``weedmap, tiles dropped, empty``, ``3``)."""
    found: list[tuple[str, str]] = []
    for key, value in metadata.items():
        where = f"{at}, {key}" if at else key
        if _OMISSION.search(key):
            several = value.items() if isinstance(value, dict) else ()
            found += [(f"{where}, {reason}", as_words(what)) for reason, what in several] or [
                (where, as_words(value))
            ]
        elif isinstance(value, dict):
            found += omissions(value, where)
    return sorted(
        (" ".join(where.replace("_", " ").split()), text) for where, text in found if text
    )


def without_omissions(metadata: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the metadata without the records of omissions."""
    rest = {key: value for key, value in metadata.items() if not _OMISSION.search(key)}
    return {
        key: without_omissions(value) if isinstance(value, dict) else value
        for key, value in rest.items()
    }


def as_words(value: JsonValue) -> str:
    """Format a metadata value as words; what is empty is left out."""
    if isinstance(value, list):
        return ", ".join(map(as_words, value))
    if isinstance(value, dict):
        texts = {key: as_words(item) for key, item in sorted(value.items())}
        return ", ".join(f"{key} {text}" for key, text in texts.items() if text)
    return "" if value is None else str(value)


Counted = Mapping[str, Counter[Any]]
"""Counts over samples (:func:`~agrotools.loading.describing.count_samples`)."""


TERMS: dict[str, Any] = orjson.loads(
    files("agrotools_build.export").joinpath("croissant.json").read_bytes()
)
"""Fixed parts: context, record set, licences, the names that ``[metadata.rai]`` may set, and their default values."""


def rai_fields(
    header: BenchmarkHeader, counted: Counted, origins: Mapping[Origin, int]
) -> dict[str, Any]:
    """Return the properties ``rai:...``.

    ``origins``: number of values of answers by origin. Values in ``metadata.rai`` of the header override the defaults.
    """
    described: dict[str, Any] = {
        **TERMS["rai"],
        **TERMS["rai_of_drawings" if header.synthetic else "rai_of_photographs"],
        "machineAnnotationTools": [f"agrotools {version('agrotools')} (reference calls)"],
        "dataBiases": [*_shares_of_samples(counted), f"Questions are in {_languages(counted)}."],
    }
    described["dataCollection"] += _sources_named(header)
    described["dataLimitations"] = [*described["dataLimitations"], _shared_files(counted)]
    if origins["tool"] or origins["reviewer"]:
        numbers = {origin: origins[origin] for origin in ("label", "tool", "reviewer")}
        said = TERMS["origins"].format(all=sum(origins.values()), **numbers)
        described["dataAnnotationProtocol"] = [said]
    if missing := omissions(header.metadata):
        listed = "; ".join(f"{where}: {what}" for where, what in missing)
        described["dataCollectionMissingData"] = f"Left out while building: {listed}"
    own = header.metadata.get("rai")
    if isinstance(own, Mapping):
        described |= own
    return {f"rai:{name}": described[name] for name in TERMS["rai_fields"] if name in described}


_LANGUAGES = {"en": "English", "zh": "Chinese"}


def _languages(counted: Counted) -> str:
    """Return the languages of the questions as words."""
    return " and ".join(_LANGUAGES[code] for code in sorted(counted["languages"]))


def _shares_of_samples(counted: Counted) -> Iterator[str]:
    """Yield how many sources and task types there are, and which share of samples the largest one has."""
    for what, counts in (("source", counted["sources"]), ("task type", counted["task_types"])):
        plural = "s" if len(counts) > 1 else ""
        for largest, count in counts.most_common(1):
            share = 100 * count / counts.total()
            yield f"{len(counts)} {what}{plural}; {share:.0f} % of samples are {largest}."


def _shared_files(counted: Counted) -> str:
    """Return the number of samples and of files as a sentence."""
    n_samples, n_files = counted["families"].total(), counted["file_kinds"].total()
    return TERMS["shared_files"].format(n_samples, n_files)


def _sources_named(header: BenchmarkHeader) -> str:
    """Return a sentence with the sources and their addresses; empty if the header names none."""
    names = [
        f"{source.name} ({source.url})" if source.url else source.name for source in header.sources
    ]
    return f" Sources: {'; '.join(names)}." if names else ""


CONFORMS_TO = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
_SAMPLES = "samples.jsonl"
_MEDIA_TYPES = {
    ".jsonl": "application/jsonlines",
    ".toml": "application/toml",
    ".tif": "image/tiff",
}


def croissant(folder: Path, header: BenchmarkHeader, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return Croissant JSON-LD of the benchmark in ``folder``, with the SHA-256 of all files, but no gold."""
    counted = count_samples(samples)
    product = f"agrotools {version('agrotools')}"
    maker = _text_of(header, "creator", f"{product}, from the sources it names")
    begun = "SYNTHETIC, drawn by a program. " if header.synthetic else ""
    keywords = ["agriculture", "tool use", "multimodal models", "benchmark"]
    if header.synthetic:
        keywords.append("synthetic")
    return {
        "@context": TERMS["context"],
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": header.name,
        "description": begun + (header.description or TERMS["description"]),
        "version": _three_numbers(header.version),
        "license": _spdx(header.licence),
        "url": _text_of(header, "url", CARD_FILE),
        "creator": {"@type": "Organization", "name": maker},
        "datePublished": _date_of_writing(),
        "citeAs": _citation(header, product),
        "inLanguage": sorted(counted["languages"]),
        "keywords": keywords,
        "isBasedOn": [_source_object(source) for source in header.sources],
        **rai_fields(header, counted, origins_of(samples)),
        "distribution": _file_objects(folder, samples),
        "recordSet": [TERMS["record_set"]],
    }


def _text_of(header: BenchmarkHeader, key: str, default: str) -> str:
    """Return a text of the metadata; ``default`` if it has none, or something else."""
    value = header.metadata.get(key)
    return value if isinstance(value, str) else default


def _three_numbers(version_text: str) -> str:
    """Return a version of one or two numbers with three, the form that Croissant recommends; others unchanged."""
    if not re.fullmatch(r"\d+(\.\d+)?", version_text):
        return version_text
    return version_text + ".0" * (2 - version_text.count("."))


def _date_of_writing() -> str:
    """Return the day of ``SOURCE_DATE_EPOCH``, else today, in UTC."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "").strip()
    seconds = int(epoch) if epoch.isdecimal() else time()
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _citation(header: BenchmarkHeader, product: str) -> str:
    """Return how to cite the benchmark, and after it how to cite its sources."""
    own = (
        f"{header.name} {header.version}, built with {product} after the design of AgroTools "
        "(arXiv 2605.22366)"
    )
    return "; ".join([own, *(source.citation for source in header.sources if source.citation)])


def _source_object(source: SourceNote) -> dict[str, str]:
    described = {
        "@type": "CreativeWork",
        "name": source.name,
        "license": _spdx(source.licence),
    }
    return {**described, "url": source.url} if source.url else described


def _spdx(licence: str) -> str:
    """Return the URL of a licence listed by SPDX or Creative Commons; return others unchanged."""
    return TERMS["licences"].get(licence, {}).get("spdx", licence)


def _file_objects(folder: Path, samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return the description of header, samples and files of a benchmark, as far as they are in ``folder``."""
    known = {file.path: file.sha256 for sample in samples for file in sample.files}
    paths = ["benchmark.toml", _SAMPLES, *sorted(known)]
    return [
        _file_object(folder, path, known.get(path)) for path in paths if (folder / path).is_file()
    ]


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


OWNERS_TERMS = "all rights reserved by their owner"
"""Terms of own photos whose owner stated none."""
_MARK = "<!-- Written by agrotools. Remove this line, and the card is no longer renewed. -->"


def write_card(
    folder: Path, header: BenchmarkHeader, samples: Sequence[Sample], front: str = "", use: str = ""
) -> None:
    """Write ``README.md`` (``front``, card, ``use``), unless it is the user's own. ``use``: default, of a folder."""
    path = folder / CARD_FILE
    if not path.is_file() or _MARK in path.read_text(encoding="utf-8", errors="replace"):
        write_whole(path, (front + _card_text(header, samples, use)).encode())


def _card_text(header: BenchmarkHeader, samples: Sequence[Sample], use: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(plain=_plain, link=_link, listed=_listed)
    counted = count_samples(samples)
    protocol = rai_fields(header, counted, origins_of(samples))["rai:dataAnnotationProtocol"]
    facts = {
        key: as_words(value)
        for key, value in without_omissions(header.metadata).items()
        # Labels are for programs, and drafts have a section of their own.
        if key not in ("rai", LABELS_KEY, DRAFTS_KEY, REVIEWED_KEY, CHECKS_KEY)
    }
    checks = stored_checks(header.metadata)
    text = environment.get_template("card.md.j2").render(
        header=header,
        counted=counted,
        examples={sample.task_type: sample.query for sample in reversed(samples)},
        unnamed=counted["sources"].keys() - {source.name for source in header.sources},
        left_out=omissions(header.metadata),
        funnel=stored_funnel(header.metadata),
        protocol=protocol if isinstance(protocol, str) else " ".join(protocol),
        facts={key: text for key, text in facts.items() if text},
        checks=[check.sentence() for check in checks],
        packs=_packs_of(checks),
        is_reserved=any(source.licence == OWNERS_TERMS for source in header.sources),
        use=use,
        mark=_MARK,
    )
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def _packs_of(checks: Iterable[ToolCheck]) -> dict[str, str]:
    """Return the packs with which the reference calls ran, by tool; a pack is no part of the folder."""
    named = ((check.tool, check.backend or "") for check in checks)
    return {tool: backend for tool, backend in named if backend.startswith("pack:")}


def _listed(counts: Mapping[Any, int]) -> str:
    return ", ".join(
        f"{key}{':' * isinstance(key, int)} {count}" for key, count in sorted(counts.items())
    )


def _link(url: str) -> str:
    return f"<{url}>" if re.fullmatch(r"https?://[^\s<>|]+", url) else _plain(url)


def _plain(text: str) -> str:
    """Return the text on one line, with markup escaped."""
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", html.escape(" ".join(text.split()), quote=False))
