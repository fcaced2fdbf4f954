"""Fit the rule of ``baseline:colours``, and measure what it pays to refuse by colours or by words, without looking.

Makes src/agrotools/data/colours.json.

    python training/fit_colours.py scenes WORK --seed 20301120 --out scenes.jsonl     # not the scenes of the packs
    python training/fit_colours.py benchmark FOLDER_OR_NAME --out field.jsonl
    python training/fit_colours.py fit scenes.jsonl              # writes src/agrotools/data/colours.json
    python training/fit_colours.py measure scenes.jsonl          # rules fitted on other clusters of the same file
    python training/fit_colours.py measure field.jsonl

``measure`` fits a logistic rule for refusals on four fifths of the clusters and applies it to the others: over the
seven numbers of each file that ``colours`` has, and over the words and numbers of the prompt that ``guess`` has. It
prints how many unanswerable questions each refuses, how many others, and the score beside that of ``guess``: that of
the guessed values (charts 0), and for an unanswerable question 1 if it alone is refused, -1 if its twin alone is.
Needs scikit-learn.
"""

import argparse
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from fit_guess import FILES, SLOTS, Question, _score
from numpy.typing import NDArray

from agrotools.agents.baselines.colours import file_numbers, rule_terms
from agrotools.agents.baselines.guess import guessed_values, is_unanswerable, prompt_features
from agrotools.core import AbstainSlot, Slot
from agrotools.scoring.slots import pair_points

DATA = Path(__file__).resolve().parent.parent / "src" / "agrotools" / "data"
Floats = NDArray[np.float64]
FOLDS = 5
STRENGTH = 0.3
"""Inverse strength of the regularisation of the rule of colours; of 0.03 to 3 the score differs little."""
STRENGTH_OF_WORDS = 0.003
"""The same for words, of which there are hundreds."""


@dataclass(frozen=True)
class Asked:
    """A question; ``pair`` is shared by twins; ``paths`` are those of its files, ``names`` what tells them apart."""

    cluster: str
    pair: str
    template: str
    query: str
    files: tuple[Any, ...]
    paths: tuple[str, ...]
    slots: tuple[Slot, ...]

    @property
    def is_answerable(self) -> bool:
        return not any(isinstance(slot, AbstainSlot) for slot in self.slots)

    @property
    def reason(self) -> str:
        return next((slot.reason for slot in self.slots if isinstance(slot, AbstainSlot)), "")

    @cached_property
    def guessed(self) -> float:
        """The score of the guessed values."""
        question = Question(self.template, self.cluster, self.query, self.files, self.slots)
        return _score(question, guessed_values(question, self.slots))  # type: ignore[arg-type]

    @cached_property
    def is_refused_by_guess(self) -> bool:
        return is_unanswerable(self.query, self.files, self.slots)

    @cached_property
    def words(self) -> Floats:
        return prompt_features(self.query, self.files)

    @cached_property
    def numbers(self) -> list[Floats]:
        """The numbers of each file that can be read."""
        found = (file_numbers(path) for path in self.paths)
        return [each for each in found if each is not None]


def read_asked(path: Path) -> list[Asked]:
    asked: list[Asked] = []
    for line in path.read_text("utf-8").splitlines():
        told = json.loads(line)
        asked.append(
            Asked(
                told["cluster"],
                told["pair"],
                told["template"],
                told["query"],
                FILES.validate_python(told["files"]),
                tuple(told["paths"]),
                SLOTS.validate_json(json.dumps(told["slots"])),
            )
        )
    return asked


def write_asked(
    out: Path, rows: Sequence[tuple[str, str, str, str, Sequence[Any], Sequence[str], Any]]
) -> None:
    """Write cluster, pair, template, question, files, their paths and slots of each question."""
    lines = [
        {
            "cluster": cluster,
            "pair": pair,
            "template": template,
            "query": query,
            "files": [file.model_dump(mode="json", exclude_none=True) for file in files],
            "paths": [*paths],
            "slots": SLOTS.dump_python(tuple(slots), mode="json", by_alias=True),
        }
        for cluster, pair, template, query, files, paths, slots in rows
    ]
    out.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    print(f"{out}: {len(lines)} questions")


def write_scenes(work: Path, seed: int, drawn: int, out: Path) -> None:
    """Write questions about fresh scenes, one of each scene and template, with as many twins as a pack has."""
    import pack_benchmarks
    from fit_guess import _progress, _worded
    from paired import with_twins

    from agrotools_build.building import with_plot_weights
    from agrotools_build.sources.part import Originals

    if seed == pack_benchmarks.SEED:
        raise SystemExit("these are the scenes of the packs; give another seed")
    pack_benchmarks.DRAWN["embedded"], pack_benchmarks.MORE["embedded"] = drawn, {}
    originals = Originals(work)
    offered = pack_benchmarks.offered_questions("embedded", work, originals, _progress, seed=seed)
    first: dict[tuple[str, str], Any] = {}
    for scene, item in offered:
        first.setdefault((str(scene.folder), item.question.template), _worded(item))
    of_subject = {id(item.subject): folder for (folder, _), item in first.items()}
    asked = with_twins([*first.values()], pack_benchmarks.TWINS, pack_benchmarks.LISTED)
    rows: list[Any] = []
    for each in asked:
        files = each.instance.files
        paths = [str(originals.files[file.path]) for file in files]
        slots = with_plot_weights(each.slots)
        folder = of_subject[id(each.subject)]
        rows.append((folder, each.pair, each.question.template, each.query, files, paths, slots))
    write_asked(out, rows)


def write_benchmark(name: str, out: Path) -> None:
    """Write the questions of a benchmark."""
    from agrotools.loading.benchmarks import load_benchmark

    loaded = load_benchmark(name)
    rows: list[Any] = []
    for sample in loaded.samples:
        pair = "+".join(sorted([sample.id, sample.twin])) if sample.twin else ""
        paths = [str(loaded.root / file.path) for file in sample.files]
        rows.append(
            (
                sample.cluster or sample.id,
                pair,
                sample.template or "",
                sample.query,
                sample.files,
                paths,
                sample.answer,
            )
        )
    write_asked(out, rows)


# -- Rules -------------------------------------------------------------------------------------------------------------


def changed_files(asked: Sequence[Asked]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the numbers of each file, and whether it takes the place of another one, so that there is no answer."""
    plain: dict[str, set[str]] = defaultdict(set)
    for each in asked:
        if each.is_answerable and each.pair:
            plain[each.pair] |= {*each.paths}
    rows: dict[tuple[str, bool], Floats] = {}
    for each in asked:
        for path in each.paths:
            is_changed = not each.is_answerable and path not in plain[each.pair]
            numbers = file_numbers(path)
            if numbers is not None:
                rows[path, is_changed] = numbers
    return np.array([*rows.values()]), np.array([changed for _, changed in rows])


@dataclass(frozen=True)
class Rule:
    mean: Floats
    scale: Floats
    weights: Floats
    constant: float

    def likelihood(self, rows: Floats, squares: bool) -> Floats:
        standardised = (rows - self.mean) / self.scale
        terms = np.array([rule_terms(row) for row in standardised]) if squares else standardised
        return 1.0 / (1.0 + np.exp(-(terms @ self.weights + self.constant)))


def fitted_rule(rows: Floats, targets: NDArray[np.bool_], strength: float, squares: bool) -> Rule:
    from sklearn.linear_model import LogisticRegression

    mean, scale = rows.mean(0), rows.std(0)
    scale[scale < 1e-6] = 1.0
    standardised = (rows - mean) / scale
    terms = np.array([rule_terms(row) for row in standardised]) if squares else standardised
    if not 0 < targets.sum() < len(targets):
        return Rule(mean, scale, np.zeros(terms.shape[1]), -9.0)
    found = LogisticRegression(C=strength, max_iter=2_000, class_weight="balanced").fit(
        terms, targets
    )
    return Rule(mean, scale, found.coef_[0], float(found.intercept_[0]))


def colours_of(rule: Rule, asked: Sequence[Asked]) -> Floats:
    """Return for each question the largest likelihood of its files."""
    return np.array(
        [
            rule.likelihood(np.array(each.numbers), True).max() if each.numbers else 0.0
            for each in asked
        ]
    )


def fit_colours(asked: Sequence[Asked]) -> Rule:
    return fitted_rule(*changed_files(asked), STRENGTH, True)


def fit_words(asked: Sequence[Asked]) -> Rule:
    rows = np.array([each.words for each in asked])
    return fitted_rule(
        rows, np.array([not each.is_answerable for each in asked]), STRENGTH_OF_WORDS, False
    )


def words_of(rule: Rule, asked: Sequence[Asked]) -> Floats:
    return rule.likelihood(np.array([each.words for each in asked]), False)


KINDS = {"colours": (fit_colours, colours_of), "words": (fit_words, words_of)}


def scores_of(asked: Sequence[Asked], refused: Sequence[bool], share: float | None) -> float:
    """Return the mean score; ``share``: weight of unanswerable questions, None for that of their number."""
    of_pair = {
        (each.pair, each.is_answerable): bool(no)
        for each, no in zip(asked, refused, strict=True)
        if each.pair
    }
    answered = [
        0.0 if no else each.guessed
        for each, no in zip(asked, refused, strict=True)
        if each.is_answerable
    ]
    twins = [
        pair_points(refused=bool(no), twin_refused=of_pair.get((each.pair, True), False))
        for each, no in zip(asked, refused, strict=True)
        if not each.is_answerable
    ]
    weight = len(twins) / len(asked) if share is None else share
    return (1 - weight) * float(np.mean(answered)) + weight * float(np.mean(twins or [0.0]))


def best_threshold(asked: Sequence[Asked], likelihoods: Floats, share: float | None) -> float:
    """Return the likelihood from which a refusal scores most; above 1 if none pays."""
    by_guess = np.array([each.is_refused_by_guess for each in asked])
    tried = [*np.quantile(likelihoods, np.linspace(0, 1, 81)), 1.1]
    return float(
        max(
            tried,
            key=lambda least: (scores_of(asked, by_guess | (likelihoods >= least), share), least),
        )
    )


def folds_of(asked: Sequence[Asked]) -> NDArray[np.int64]:
    clusters = sorted({each.cluster for each in asked})
    order = np.random.default_rng(11).permutation(len(clusters))
    fold = {cluster: int(order[n]) % FOLDS for n, cluster in enumerate(clusters)}
    return np.array([fold[each.cluster] for each in asked])


def cross_fitted(kind: str, asked: Sequence[Asked]) -> Floats:
    """Return the likelihoods of rules that are fitted on the other folds."""
    fit, apply = KINDS[kind]
    folds, found = folds_of(asked), np.zeros(len(asked))
    for fold in range(FOLDS):
        inside = [each for each, own in zip(asked, folds, strict=True) if own != fold]
        places = np.flatnonzero(folds == fold)
        if len(places):
            found[places] = apply(fit(inside), [asked[place] for place in places])
    return found


def measure(asked: Sequence[Asked], share: float | None) -> None:
    twins = np.array([not each.is_answerable for each in asked])
    by_guess = np.array([each.is_refused_by_guess for each in asked])
    floor = scores_of(asked, by_guess, share)
    print(
        f"{len(asked)} questions, {twins.sum()} unanswerable, {len({e.cluster for e in asked})} clusters"
    )
    print(
        f"guess: {100 * floor:.1f}, refuses {(by_guess & twins).sum()} and {(by_guess & ~twins).sum()} others"
    )
    folds = folds_of(asked)
    for kind in KINDS:
        likelihoods, refused = cross_fitted(kind, asked), by_guess.copy()
        for fold in range(FOLDS):
            own = folds == fold
            others = [each for each, is_own in zip(asked, own, strict=True) if not is_own]
            least = best_threshold(others, likelihoods[~own], share)
            refused[own] |= likelihoods[own] >= least
        score = scores_of(asked, refused, share)
        print(
            f"{kind}: {100 * score:.1f} ({100 * (score - floor):+.1f}), refuses {(refused & twins).sum()} and"
            f" {(refused & ~twins).sum()} others"
        )
        told = Counter(
            (each.template, each.reason)
            for each, no in zip(asked, refused, strict=True)
            if no and not each.is_answerable and not each.is_refused_by_guess
        )
        print("  ", ", ".join(f"{n} {' '.join(what)}" for what, n in told.most_common(12)))


def ship(asked: Sequence[Asked], share: float | None) -> None:
    """Write the rule, with the threshold that scores most on clusters that it was not fitted to."""
    rule = fit_colours(asked)
    threshold = best_threshold(asked, cross_fitted("colours", asked), share)
    stored = {
        "fitted_on": {
            "questions": len(asked),
            "unanswerable": sum(not e.is_answerable for e in asked),
        },
        "mean": [float(f"{x:.5g}") for x in rule.mean],
        "scale": [float(f"{x:.5g}") for x in rule.scale],
        "weights": [float(f"{x:.5g}") for x in rule.weights],
        "constant": float(f"{rule.constant:.5g}"),
        "threshold": float(f"{threshold:.4g}"),
    }
    (DATA / "colours.json").write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    print(json.dumps(stored))


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    scenes = commands.add_parser("scenes")
    scenes.add_argument("work", type=Path)
    scenes.add_argument("--seed", type=int, required=True)
    scenes.add_argument("--drawn", type=int, default=24)
    scenes.add_argument("--out", type=Path, required=True)
    benchmark = commands.add_parser("benchmark")
    benchmark.add_argument("name")
    benchmark.add_argument("--out", type=Path, required=True)
    for name in ("fit", "measure"):
        command = commands.add_parser(name)
        command.add_argument("file", type=Path)
        command.add_argument("--share", type=float, help="weight of unanswerable questions")
    given = parser.parse_args()
    if given.command == "scenes":
        write_scenes(given.work.resolve(), given.seed, given.drawn, given.out)
    elif given.command == "benchmark":
        write_benchmark(given.name, given.out)
    elif given.command == "fit":
        ship(read_asked(given.file), given.share)
    else:
        measure(read_asked(given.file), given.share)


if __name__ == "__main__":
    main()
