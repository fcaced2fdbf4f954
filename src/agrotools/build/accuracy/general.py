"""Accuracy of calculate (exact fractions of generated expressions), of plot, and of lookup_agronomy.

``lookup_agronomy`` is measured by the entries that it finds, and by its answers to questions outside the knowledge
base. The questions are in ``questions/``: the method was chosen on ``development.toml``; the figures come from
``report.toml``, which was written afterwards. Misspelt names are generated from all names of the knowledge base by a
seed.
"""

import random
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from importlib.resources import files
from statistics import mean, median, pvariance, variance
from typing import Any

from agrotools.build.accuracy.study import Bench, Columns, Figure, Study, mean_of
from agrotools.knowledge.entries import Entry
from agrotools.knowledge.retrieval import knowledge_base
from agrotools.knowledge.words import folded, has_cjk

EXPRESSIONS = 300
_DEPTH = 4
_DIGITS = 1e-11
"""Largest relative error of a correct value: precision=12 keeps 12 digits."""

Exact = tuple[str, Fraction]


def _arithmetic(rng: random.Random, depth: int = _DEPTH) -> Exact:
    """Return a random expression in + - * / ** and brackets, and its exact value."""
    if depth == 0 or rng.random() < 0.15:
        number = Fraction(rng.randint(-9999, 9999), rng.choice((1, 1, 10, 100)))
        return f"({float(number)!r})" if number.denominator > 1 else f"({number})", number
    (left, a), (right, b) = _arithmetic(rng, depth - 1), _arithmetic(rng, depth - 1)
    sign = rng.choice("+-*/^")
    if sign == "^":
        power = rng.randint(2, 3)
        return f"({left} ** {power})", a**power
    if sign == "/":
        return (f"({left} / {right})", a / b) if b else (f"({left} - {right})", a - b)
    return f"({left} {sign} {right})", {"+": a + b, "-": a - b, "*": a * b}[sign]


def _numbers(rng: random.Random, least: int = 2) -> list[Fraction]:
    return [Fraction(rng.randint(1, 99_999), 100) for _ in range(rng.randint(least, 40))]


_LIST_FUNCTIONS: dict[str, Callable[[list[Fraction]], Fraction | float]] = {
    "sum(v)": lambda v: sum(v, Fraction(0)),
    "mean(v)": mean,
    "median(v)": median,
    "var(v)": variance,
    "var(v, ddof=0)": pvariance,
    "max(v) - min(v)": lambda v: max(v) - min(v),
    "cv(v) ** 2": lambda v: 10_000 * variance(v) / mean(v) ** 2,
    "percentile(v, 25)": lambda v: _percentile(v, Fraction(1, 4)),
    "percentile(v, 90)": lambda v: _percentile(v, Fraction(9, 10)),
    "rmse(v, scale(v, 1.25)) ** 2": lambda v: sum((x / 4) ** 2 for x in v) / len(v),
    "mape(v, scale(v, 1.25))": lambda _: Fraction(25),
    "linreg(v, scale(v, 3))[0]": lambda v: Fraction(3 if len(set(v)) > 1 else 0),
    "weighted_mean(v, v)": lambda v: sum(x * x for x in v) / sum(v),
    "percent_change(v[0], v[1])": lambda v: 100 * (v[1] - v[0]) / v[0],
    "ndvi(v[0], v[1])": lambda v: (v[0] - v[1]) / (v[0] + v[1]),
    "savi(v[0], v[1])": lambda v: Fraction(3, 2) * (v[0] - v[1]) / (v[0] + v[1] + Fraction(1, 2)),
    "severity(v[0], v[0] + v[1])": lambda v: 100 * v[0] / (v[0] + v[1]),
    "efficacy_abbott(v[0], v[1])": lambda v: 100 * (v[0] - v[1]) / v[0],
    "plants_per_ha(v[0], v[1])": lambda v: 10_000 / (v[0] * v[1]),
    "seeding_rate(v[0], v[1], 85)": lambda v: v[0] * v[1] / 85,
    "disease_index(v)": lambda v: 100 * sum(k * x for k, x in enumerate(v)) / ((len(v) - 1) * sum(v)),
    "convert(v[0], 'mu', 'ha')": lambda v: v[0] / 15,
    "convert(v[0], 't/ha', 'kg/ha')": lambda v: 1000 * v[0],
}


def _percentile(values: list[Fraction], share: Fraction) -> Fraction:
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    below = rank.numerator // rank.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def _score_value(bench: Bench, expression: str, variables: dict[str, Any], exact: Fraction) -> float:
    """Return 100 for a correct value and 0 for a wrong one.

    The tolerance is absolute for values below 1: where terms cancel, 12 digits of each cannot give 12 digits of the
    rest.
    """
    value = bench.call(expression=expression, variables=variables, precision=12).value
    return 100.0 * (abs(Fraction(value) - exact) <= Fraction(_DIGITS) * max(abs(exact), Fraction(1)))


def _generated(bench: Bench) -> list[Figure]:
    rng = random.Random(11)
    arithmetic: list[float] = []
    while len(arithmetic) < EXPRESSIONS:
        text, exact = _arithmetic(rng)
        if abs(exact) < 10**15 and len(text) <= 500:
            arithmetic.append(_score_value(bench, text, {}, exact))
    functions: list[float] = []
    names = sorted(_LIST_FUNCTIONS)
    for number in range(EXPRESSIONS):
        name, values = names[number % len(names)], _numbers(rng)
        functions.append(
            _score_value(bench, name, {"v": [*map(float, values)]}, Fraction(_LIST_FUNCTIONS[name](values)))
        )
    note = f"none wrong of {EXPRESSIONS} means under 1 % wrong of all such expressions, with 95 % confidence"
    return [
        mean_of("arithmetic, right to 11 digits, %", arithmetic, goal=100.0, note=note if min(arithmetic) else ""),
        mean_of("statistics and formulas, right to 11 digits, %", functions, goal=100.0,
                note=note if min(functions) else ""),
    ]  # fmt: skip


CALCULATE_STUDIES = (Study("calculate", "made-up expressions", _generated, needs_folder=False),)
KINDS = ("line", "bar", "grouped_bar", "scatter", "hist", "pie", "box", "heatmap")
PER_KIND = 6


def _series(kind: str, rng: random.Random) -> list[dict[str, Any]]:
    points = rng.randint(2, 12)
    count = 1 if kind in ("pie", "bar") else rng.randint(2, 4)
    x: list[Any] | None = [f"plot {number}" for number in range(points)]
    if kind in ("line", "scatter"):
        x = sorted(round(rng.uniform(0, 100), 2) for _ in range(points))
    if kind in ("hist", "box"):
        x = None
    series = [[round(rng.uniform(0.1, 900), 3) for _ in range(points)] for _ in range(count)]
    return [{"name": f"series {n}", **({} if x is None else {"x": x}), "y": y} for n, y in enumerate(series)]


def _round_trip(bench: Bench) -> list[Figure]:
    rng = random.Random(5)
    columns = Columns()
    for number in range(len(KINDS) * PER_KIND):
        kind = KINDS[number % len(KINDS)]
        series = _series(kind, rng)
        labels: dict[str, Any] = {"title": "yield", "y_label": "yield", "y_unit": "t/ha"}
        first = bench.call(kind=kind, series=series, **labels)
        returned = [{"name": each.name, "x": list(each.x), "y": list(each.y)} for each in first.spec.series]
        # A box plot is drawn from raw values, but its specification holds only their summary.
        second = first if kind == "box" else bench.call(kind=first.spec.kind, series=returned, **labels)
        pictures = [_bytes(bench, first, 2 if second is not first else 1), _bytes(bench, second, 1)]
        columns.add(again=100.0 * (second.spec == first.spec and pictures[0] == pictures[1]))
        if kind not in ("hist", "box"):
            pairs = zip(returned, series, strict=True)
            same = all(each["x"] == expected["x"] and each["y"] == expected["y"] for each, expected in pairs)
            columns.add(unchanged=100.0 * same)
    return [
        columns.mean("figures whose specification draws the same figure, %", "again", goal=100.0),
        columns.mean("figures whose specification holds the values given, %", "unchanged", goal=100.0),
    ]


def _bytes(bench: Bench, result: Any, calls_ago: int) -> bytes:
    return (bench.scratch / f"call-{len(bench.call_ms) - calls_ago}" / result.figure.name).read_bytes()


PLOT_STUDIES = (Study("plot", "made-up series", _round_trip, needs_folder=False),)
_LEAST_LETTERS = 5
_LONG = 8
"""Minimum length of names that may get two slips."""


def slipped(name: str, rng: random.Random, slips: int) -> str:
    """Return ``name`` with ``slips`` random typing errors: letters dropped, inserted, replaced or swapped."""
    letters = list(name)
    for _ in range(slips):
        places = [at for at, letter in enumerate(letters) if letter.isalpha()]
        at = rng.choice(places)
        kind = rng.choice(("drop", "insert", "replace", "swap"))
        if kind == "drop":
            del letters[at]
        elif kind == "insert":
            letters.insert(at, rng.choice(string.ascii_lowercase))
        elif kind == "replace":
            others = [letter for letter in string.ascii_lowercase if letter != letters[at].lower()]
            letters[at] = rng.choice(others)
        elif at + 1 < len(letters):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def misspelt(entries: Sequence[Entry], seed: int) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield (misspelt name, name, ids of all entries with that name) for every name with at least five letters.

    Names under eight letters get one slip, longer ones one or two. Chinese names are left out. Slips that produce the
    name of another entry or change nothing are drawn again.
    """
    rng = random.Random(seed)
    owners = names_and_owners(entries)
    for name, ids in owners.items():
        if has_cjk(name) or sum(letter.isalpha() for letter in name) < _LEAST_LETTERS:
            continue
        for _ in range(20):
            wrong = slipped(name, rng, 1 if len(name) < _LONG else rng.choice((1, 2)))
            if folded(wrong) != name and folded(wrong) not in owners and folded(wrong):
                yield wrong, name, ids
                break


def names_and_owners(entries: Sequence[Entry]) -> dict[str, frozenset[str]]:
    """Return the ids of the entries with each name; names are folded."""
    owners: dict[str, set[str]] = {}
    for entry in entries:
        for name in entry.names.all():
            if form := folded(name):
                owners.setdefault(form, set()).add(entry.id)
    return {name: frozenset(ids) for name, ids in owners.items()}


_SEED = 20
_SENTENCES = 300
_MOST_NAMES = 1500


def questions(name: str) -> dict[str, Any]:
    """Load a set of questions: ``development``, ``report``, or ``blind`` (by a writer who saw only the names)."""
    text = files("agrotools.build.accuracy").joinpath("questions", f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)


def _recall(bench: Bench, query: str, ids: Iterable[str]) -> tuple[float, float]:
    """Return recall@1 and recall@3 of a query (0 or 1 each): one of ``ids`` is first, or among the first three."""
    hits = [hit.kb_id for hit in bench.call(query=query, top_k=3).hits]
    right = frozenset(ids)
    return float(hits[:1] != [] and hits[0] in right), float(any(hit in right for hit in hits))


def _names(bench: Bench) -> list[Figure]:
    entries = knowledge_base()[0].entries
    misspellings = [(wrong, ids) for wrong, _, ids in misspelt(entries, _SEED)]
    if len(misspellings) > _MOST_NAMES:
        misspellings = random.Random(_SEED).sample(misspellings, _MOST_NAMES)
    queries = {
        "misspelt names": misspellings,
        "names in sentences": _in_sentences(entries, slip=False),
        "misspelt names in sentences": _in_sentences(entries, slip=True),
        "Chinese names in questions": [
            (f"{name}怎么防治", ids) for name, ids in names_and_owners(entries).items() if has_cjk(name)
        ],
    }
    fields: dict[str, dict[str, Any]] = {
        "misspelt names": {"goal": 0.97, "note": "one slip, in long names one or two; all names"},
        "names in sentences": {"note": "right spelling"},
    }
    return [
        mean_of(f"{what}, recall@1", [_recall(bench, query, ids)[0] for query, ids in pairs], **fields.get(what, {}))
        for what, pairs in queries.items()
        if pairs
    ]


def _in_sentences(entries: tuple[Entry, ...], *, slip: bool) -> list[tuple[str, frozenset[str]]]:
    rng = random.Random(_SEED + slip)
    frames = questions("report")["sentences"]
    if slip:
        pairs = [(wrong, ids) for wrong, _, ids in misspelt(entries, _SEED + 1)]
    else:
        owners = names_and_owners(entries).items()
        pairs = [(name, ids) for name, ids in owners if not has_cjk(name) and len(name) >= _LEAST_LETTERS]
    chosen = rng.sample(pairs, min(_SENTENCES, len(pairs)))
    return [(rng.choice(frames).format(name=name), ids) for name, ids in chosen]


def _question_figures(bench: Bench, name: str) -> list[Figure]:
    question_sets = questions(name)
    recall_goal, false_goal = (None, None) if name == "development" else (0.85, 4.0)
    columns = Columns()
    for part in ("symptoms", "added", "management"):
        for query, ids in question_sets[part].items():
            first, among = _recall(bench, query, ids)
            columns.add(**{f"{part} first": first, f"{part} among": among})
    parts: list[str] = []
    for part, queries in question_sets["outside"].items():
        answered = [100.0 * (not bench.call(query=query).not_found) for query in queries]
        parts.append(f"{part} {sum(answered) / 100:.0f} of {len(answered)}")
        for value in answered:
            columns.add(outside=value)
    outside = "questions outside the base, answered, %"
    return [
        columns.mean("symptom phrases, recall@1", "symptoms first", goal=recall_goal),
        columns.mean("symptom phrases, recall@3", "symptoms among"),
        columns.mean("management and method questions, recall@1", "management first"),
        columns.mean("questions on entries added later, recall@1", "added first"),
        columns.mean_error(outside, "outside", goal=false_goal, note=", ".join(parts)),
    ]


LOOKUP_STUDIES = (
    Study("lookup_agronomy", "names of the base", _names, needs_folder=False),
    *(
        Study("lookup_agronomy", f"questions {of}", partial(_question_figures, name=name), needs_folder=False)
        for of, name in (
            ("for the report", "report"),
            ("of another writer", "blind"),
            ("for development", "development"),
        )
    ),
)
