"""Dataset card of a benchmark folder: ``README.md`` and its figures in ``card/``.

The card describes the questions, the files, their sources and licences. It contains one example question of each task
type and no answers.
"""

import html
import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from agrotools.build.export.croissant import Tally, as_words, omissions, rai_fields, without_omissions
from agrotools.core import ANSWER_TYPES, FAMILIES, Sample
from agrotools.core.files import read_table, write_whole
from agrotools.formats.benchmark import CARD_FILE, CARD_FOLDER, BenchmarkHeader

_COLOURS = {"exact": "#0072B2", "tolerance": "#E69F00", "plot": "#009E73", "open_text": "#CC79A7", "image": "#56B4E9",
            "": "#0072B2"}  # fmt: skip
_ROW_IN = 0.32
_MOST_SOURCES = 25
_MARK = "<!-- Written by agrotools. Remove this line, and the card is no longer renewed. -->"
TEXTS = read_table(Path(__file__).with_name("card.toml"))


def write_card(
    folder: Path, header: BenchmarkHeader, samples: Iterable[Sample], front: str = "", use: str = TEXTS["use"]
) -> None:
    """Write ``README.md`` (``front``, card, ``use``) and ``card/*.png``, unless ``README.md`` is the user's own."""
    samples = tuple(samples)
    path = folder / CARD_FILE
    if path.is_file() and _MARK not in path.read_text(encoding="utf-8", errors="replace"):
        return
    counted = Tally(samples)
    (folder / CARD_FOLDER).mkdir(exist_ok=True)
    for name, content in card_plots(counted).items():
        write_whole(folder / CARD_FOLDER / name, content)
    write_whole(path, (front + card_text(header, counted, samples, use)).encode())


def card_text(header: BenchmarkHeader, counted: Tally, samples: Sequence[Sample], use: str = TEXTS["use"]) -> str:
    """Return the card in Markdown."""
    parts = [
        f"# {_plain(header.name)}, version {_plain(header.version)}",
        _plain(header.description),
        TEXTS["synthetic"] if header.synthetic else "",
        "Questions on agricultural images, each with the files it is about, reference calls of tools, and scored "
        "answers. A model is meant to be evaluated on it, not trained on it.",
        "## What is in it",
        _contents(header, counted),
        *(f"![{title}]({CARD_FOLDER}/{name})" for name, title in TEXTS["figures"].items()),
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


def _contents(header: BenchmarkHeader, counted: Tally) -> str:
    def listed(counts: Mapping[str, int]) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))

    def by_number(counts: Mapping[int, int]) -> str:
        return ", ".join(f"{number}: {count}" for number, count in sorted(counts.items()))

    rows = [
        ("samples", str(counted.samples)),
        ("families", listed({FAMILIES.get(name, name): count for name, count in counted.families.items()})),
        ("task types", listed(counted.task_types)),
        ("answer types", listed(counted.answer_types)),
        ("answer slots", listed(counted.slots)),
        ("unique files", f"{counted.kinds.total()} ({listed(counted.kinds)})"),
        ("files of a sample", by_number(counted.files)),
        ("reference calls", str(counted.tools.total())),
        ("calls of a sample", by_number(counted.calls)),
        ("distinct tools of a sample", by_number(counted.distinct_tools)),
        ("templates", str(counted.templates)),
        ("languages of the questions", listed(counted.languages)),
        ("answerable without tools", f"{counted.without_tools['yes']} (no raster, no table, no figure to draw)"),
        ("toolset", ", ".join(header.toolset)),
    ]
    return _table(("what", "how many"), [(_plain(what), _plain(text)) for what, text in rows])


def _examples(samples: Sequence[Sample]) -> list[tuple[str, str]]:
    first: dict[str, str] = {}
    for sample in samples:
        first.setdefault(sample.task_type, sample.query)
    return [(_plain(task_type), _plain(query)) for task_type, query in sorted(first.items())]


def _sources(header: BenchmarkHeader, counted: Tally) -> str:
    rows: list[tuple[str, ...]] = []
    for source in header.sources:
        notes = " ".join(text for text in (source.citation, source.note) if text)
        count = str(counted.sources[source.name] or "")
        rows.append((_plain(source.name), count, _plain(source.licence), _link(source.url or ""), _plain(notes)))
    listed_names = {source.name for source in header.sources}
    unnamed = sorted((name, count) for name, count in counted.sources.items() if name not in listed_names)
    # If there is only one source, files without a listed source fall under its licence.
    licence = _plain(header.sources[0].licence) if len(header.sources) == 1 else ""
    rows += [(_plain(name), str(count), licence, "", "") for name, count in unnamed]
    return _table(("source", "samples", "licence", "where to get it", "cite, note"), rows) if rows else ""


def _left_out(metadata: Mapping[str, JsonValue]) -> str:
    lines = [f"- {_plain(where)}: {_plain(what)}" for where, what in omissions(metadata)]
    return "## What was left out\n\n" + "\n".join(lines) if lines else ""


def _built(header: BenchmarkHeader, counted: Tally) -> str:
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


def card_plots(counted: Tally) -> dict[str, bytes]:
    """Draw the charts of the card as horizontal, stacked bars; PNG files by name."""
    sources = counted.sources.most_common(_MOST_SOURCES)
    if rest := counted.sources.total() - sum(count for _, count in sources):
        sources.append((f"{len(counted.sources) - len(sources)} others", rest))
    order = {name: -count for name, count in counted.task_types.items()}
    types = sorted(counted.tasks, key=lambda pair: (order[pair[0]], ANSWER_TYPES.index(pair[1])))
    bars: dict[str, dict[tuple[str, str], int]] = {
        "tasks.png": {pair: counted.tasks[pair] for pair in types},
        "calls.png": {(str(number), ""): count for number, count in sorted(counted.calls.items())},
        "tools.png": {(name, ""): count for name, count in counted.tools.most_common()},
        "sources.png": {(name, ""): count for name, count in sources},
    }
    return {name: _bar_chart(title, bars[name]) for name, title in TEXTS["figures"].items()}


def _bar_chart(title: str, counts: Mapping[tuple[str, str], int]) -> bytes:
    """Return a PNG with one bar per row. ``counts``: by row and segment of the bar (empty if there is only one)."""
    import matplotlib
    from matplotlib.figure import Figure

    from agrotools.tools.plotting.sheet import STYLE, font_families

    rows, segments = (list(dict.fromkeys(pair[place] for pair in counts)) for place in (0, 1))
    families, _ = font_families([title, "…", *rows])
    with matplotlib.rc_context({**STYLE, "font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Glyph.*missing")
        figure = Figure(figsize=(9, 1.6 + _ROW_IN * max(len(rows), 1)))
        axes = figure.add_subplot()
        axes.margins(x=0.08)
        axes.invert_yaxis()
        totals = [0] * len(rows)
        for segment in segments:
            widths = [counts.get((row, segment), 0) for row in rows]
            bars = axes.barh(range(len(rows)), widths, left=totals, color=_COLOURS[segment], label=segment)
            totals = [before + width for before, width in zip(totals, widths, strict=True)]
            if segment == segments[-1]:
                axes.bar_label(bars, labels=[str(total) for total in totals], padding=4, fontsize=9)
        axes.set_yticks(range(len(rows)), [row if len(row) <= 40 else f"{row[:39]}…" for row in rows])
        figure.suptitle(title, x=0.02, ha="left", fontsize=12, fontweight="bold")
        if len(segments) > 1:
            figure.legend(loc="outside lower center", ncols=len(segments))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
