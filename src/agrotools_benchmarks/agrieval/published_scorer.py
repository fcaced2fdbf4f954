"""Published scorer in AgriEval's repository: choice questions, and texts of open questions.

**Choice questions.** The patterns are in ``published_scorer.toml``, which names their source. If the original finds no
letter, it guesses: it calls the answer correct with probability 0.2 for several correct options, one over the number of
options for one, and one half for true or false. Here the probability is the credit, so that scoring is deterministic.
An empty reply scores 0.

**Open questions.** ROUGE of two packages, BLEU and BERTScore, reimplemented from the behaviour of
eval/qa_result_evaluate.py (github.com/YanPioneer/AgriEval, commit 46f92806e3af884aa62423a8561cd86cbbff748d, Apache-2.0)
with the packages rouge 1.0.1 and rouge-score 0.1.2. Unexpected behaviour is kept:

* texts are split only at spaces, so that a Chinese text without spaces is one word, and a paraphrase has no overlap
(``rouge_*``); the other package knows only the letters a to z and digits, so that a Chinese text has no words at all
(``hf_rouge*``);
* for ``rouge_*``, ``sent_bleu*`` and ``corpus_bleu*`` answer and reference are exchanged;
* the script ends with an exception for a text of only full stops, and for a pair that exceeds the recursion limit;
* an empty answer is replaced by a space, an empty reference by 抱歉，无法回答;
* ``mauve`` is always 0.

The original ``hf_rouge*`` are the middle of 1,000 unseeded resamples and vary between runs; here the mean is used.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from agrotools.core.files import read_table
from agrotools.core.texts import install_command
from agrotools.scoring.predictions import Figure, PredictionScores, PublishedScorerStops, published
from agrotools.text.rouge import common_length, common_places
from agrotools_benchmarks.agrieval.plugin import KINDS, ROUGES, OptionKind

MOST_STEPS = 989
"""Recursive calls of the package rouge before Python's limit stops the script (measured with Python 3.11)."""
_NO_REFERENCE = "抱歉，无法回答"
_NO_LATIN = re.compile("[^a-z0-9]+")
_MODEL = "bert-base-chinese"
_CHANCE_OF_SEVERAL = 0.2
_CHANCE_OF_TRUE_FALSE = 0.5
_SUMMING_UP = "综上所述"
_RIGHT, _WRONG = "正确", "错误"
NO_REPLIES = "the script reads generated_answer, which no entry has"


def score_choices(entries: Sequence[Mapping[str, Any]]) -> PredictionScores:
    """Compute the expected accuracy that the scorer prints for a result file, over entries with a reply and an answer.

    Raises:
        PublishedScorerStops: the original raises an exception.
    """
    with_reply = [entry for entry in entries if "generated_answer" in entry and "answer" in entry]
    total = 0.0
    for position, entry in enumerate(with_reply):
        with published(f"entry {position} of those with a reply"):
            total += _credit_of(entry)
    metric, n = "agrieval.accuracy_published", len(with_reply)
    if not n:
        return PredictionScores("choices", {}, {}, {metric: NO_REPLIES})
    return PredictionScores("choices", {metric: Figure(100 * total / n, n)}, {})


def _credit_of(entry: Mapping[str, Any]) -> float:
    reply = entry["generated_answer"]
    if not reply:
        return 0.0
    options, answer = entry["options"], entry["answer"]
    # The kind is only read if the number of capitals differs from the number of correct options.
    capitals = {character for character in reply.replace("\n", "") if character.isupper()}
    kind_value: Any = None if capitals and len(capitals) == len(answer) else entry["question_type"]
    return credit(
        reply, options, KINDS.get(kind_value) if isinstance(kind_value, str) else None, answer
    )


def credit(reply: str, options: Mapping[str, str], kind: OptionKind | None, answer: str) -> float:
    """Return the expected score of ``reply``, 0 to 1.

    ``answer``: letters of the correct options. ``kind``: None for a question of an unknown kind, for which only
    capitals are read.
    """
    if not reply:
        return 0.0
    read = "".join(sorted(set(extract(reply, len(options), kind, len(answer)))))
    if not read and not options:
        return 0.0
    if read or kind is None:
        return float(read == "".join(sorted(set(answer))))
    if kind == "multiple":
        return _CHANCE_OF_SEVERAL
    return _CHANCE_OF_TRUE_FALSE if kind == "true_false" else 1 / len(options)


def extract(reply: str, options: int, kind: OptionKind | None, letters: int) -> str:
    """Return the letters that the scorer reads; empty if there are none.

    These are all capitals if they are as many as the correct options (``letters``), otherwise the match of the first
    matching pattern, otherwise all capitals if several options can be correct.
    """
    text = reply.replace("\n", "")
    capitals = sorted({character for character in text if character.isupper()})
    if len(capitals) == letters:
        return "".join(capitals)
    last = chr(ord("A") + options - 1)
    if kind is None:
        return ""
    for pattern, group in _patterns(kind, last):
        if match := _search(pattern, text, last, group):
            letter = f"[A-{last}]"
            return (
                "".join(sorted(set(re.findall(letter, match))))
                if kind == "multiple"
                else match.strip()
            )
    if kind == "multiple":
        return "".join(capitals)
    if kind == "true_false" and (word := re.search(f"{_RIGHT}|{_WRONG}", text)):
        return "A" if word[0] == _RIGHT else "B"
    return ""


@cache
def _patterns(kind: OptionKind, last: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    patterns_by_kind = read_table(Path(__file__).with_suffix(".toml"))
    kinds = {"single": ("one",), "multiple": ("several",), "true_false": ("one", "true_false")}
    rows = [row for name in kinds[kind] for row in patterns_by_kind[name]]
    return tuple(
        (re.compile(pattern.replace("{last}", last), re.DOTALL), group) for pattern, group in rows
    )


def _search(pattern: re.Pattern[str], text: str, last: str, group: int) -> str | None:
    """Return the group of the first match; equivalent to a plain search, but in linear time."""
    if pattern.pattern.startswith(_SUMMING_UP):
        # Nested repeats: the match ends at the last letter after the first such phrase.
        start = text.find(_SUMMING_UP)
        behind = re.findall(f"[A-{last}]", text[start + len(_SUMMING_UP) :]) if start >= 0 else []
        return behind[-1] if behind else None
    if ".*?" in pattern.pattern:
        # Nothing can match after the last place where such a pattern can end.
        in_words = pattern.pattern.endswith("正确(答案)?")
        last_letter = max(
            (text.rfind(chr(code)) for code in range(ord("A"), ord(last) + 1)), default=-1
        )
        ends = text.rfind(_RIGHT) + len("正确答案") if in_words else last_letter + 1
        text = text[: max(0, ends)]
    match = pattern.search(text)
    return match[group] if match else None


class Pair(NamedTuple):
    """Answer and reference as the script compares them."""

    answer: str
    reference: str


def as_compared(answer: str | None, reference: str | None) -> Pair:
    """Return both texts, with the script's substitutes for missing or blank ones."""
    shown = reference if reference and reference.strip() else _NO_REFERENCE
    return Pair(answer if answer and answer.strip() else " ", shown)


def rouges(pair: Pair) -> dict[str, float]:
    """Return the :data:`ROUGES` of two texts, each 0 to 1.

    Pairs for which the script stops also get a value: 0 for a text without sentences, otherwise the result without the
    recursion limit.
    """
    return dict(zip(ROUGES, (*_by_spaces(pair), *_by_latin_words(pair)), strict=True))


def stop_at(pair: Pair) -> str | None:
    """Return the name of the exception with which the script ends for this pair; None if there is none."""
    answer, reference = map(_sentences, pair)
    if not answer or not reference:
        return "ValueError"
    shared = (
        shared_words(one.split(" "), other.split(" "), MOST_STEPS)
        for one in answer
        for other in reference
    )
    return "RecursionError" if None in shared else None


def score_open(entries: Sequence[Mapping[str, Any]]) -> PredictionScores:
    """Compute all metrics that the script prints for a result file, over entries with a reply and an answer.

    Values are in percent with four decimals, as printed. Metrics whose package is missing are left out.

    Raises:
        PublishedScorerStops: the script ends with an exception.
    """
    with_reply = [entry for entry in entries if "generated_answer" in entry and "answer" in entry]
    pairs: list[Pair] = []
    for position, entry in enumerate(with_reply):
        where = f"entry {position} of those with a reply"
        with published(where):
            pairs.append(as_compared(entry["generated_answer"], entry["answer"]))
        if error := stop_at(pairs[-1]):
            raise PublishedScorerStops(error, where, "the package rouge cannot compare it")
    if not pairs:
        return PredictionScores(
            "open questions", {}, {}, {f"agrieval.{name}_published": NO_REPLIES for name in ROUGES}
        )
    rows = [rouges(pair) for pair in pairs]
    values = {name: mean(row[name] * 100 for row in rows) for name in ROUGES}
    left_out = {"mauve": "the script prints 0 without computing it"}
    for names, compute, needs in _PACKAGES:
        try:
            values |= dict(zip(names, compute(pairs), strict=True))
        except ImportError:
            left_out |= dict.fromkeys(names, f"needs {needs}")
        except (LookupError, OSError) as error:
            why = next(
                (line.strip(" *") for line in str(error).splitlines() if line.strip(" *")),
                type(error).__name__,
            )
            left_out |= dict.fromkeys(
                names, f"needs {needs}; what it needs is not here: {why[:80]}"
            )
    return PredictionScores(
        "open questions",
        {
            f"agrieval.{name}_published": Figure(round(value, 4), len(rows))
            for name, value in values.items()
        },
        {},
        {f"agrieval.{name}_published": reason for name, reason in left_out.items()},
    )


def _sentences(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split(".") if part]


def _by_spaces(pair: Pair) -> tuple[float, float, float]:
    """Return ROUGE-1, -2 and -L of the package rouge, which counts each distinct word and pair of words once."""
    answer, reference = map(_sentences, pair)
    if not answer or not reference:
        return 0.0, 0.0, 0.0
    first, second = (
        [word for one in sentences for word in one.split(" ")] for sentences in (answer, reference)
    )
    found = (
        shared_words(one.split(" "), other.split(" ")) or ()
        for one in answer
        for other in reference
    )
    shared = set[str]().union(*found)
    words, other_words = set(first), set(second)
    pairs, other_pairs = set(pairwise(first)), set(pairwise(second))
    # The script gives the answer as reference and the reference as answer.
    return (
        f_of_rouge(len(words & other_words), len(other_words), len(words)),
        f_of_rouge(len(pairs & other_pairs), len(other_pairs), len(pairs)),
        f_of_rouge(len(shared), len(other_words), len(words)),
    )


def f_of_rouge(both: int, n_answer: int, n_reference: int) -> float:
    """Return the F1 of the package ``rouge``, from numbers of distinct words or pairs of words."""
    precision, recall = (
        both / n_answer if n_answer else 0.0,
        both / n_reference if n_reference else 0.0,
    )
    return 2.0 * ((precision * recall) / (precision + recall + 1e-8))


def shared_words(
    reference: Sequence[str], answer: Sequence[str], most_steps: int | None = None
) -> set[str] | None:
    """Return the distinct words of the longest common subsequence that the package ``rouge`` finds.

    None if its search takes more than ``most_steps`` calls.
    """
    places = common_places(reference, answer, first_at_ties=False, most_steps=most_steps)
    return None if places is None else {reference[place] for place in places}


def _by_latin_words(pair: Pair) -> tuple[float, float, float, float]:
    """Return rouge1, rouge2, rougeL and rougeLsum of the package rouge-score, without stemming."""
    words, reference_words = map(_latin_words, pair)
    counts = (_ngrams(words, reference_words, 1), _ngrams(words, reference_words, 2))
    longest = _plain_f(common_length(reference_words, words), len(words), len(reference_words))
    lines, lines_wanted = (
        [_latin_words(line) for line in text.split("\n") if line] for text in pair
    )
    return (
        *counts,
        longest,
        _plain_f(_hits(lines, lines_wanted), sum(map(len, lines)), sum(map(len, lines_wanted))),
    )


def _latin_words(text: str) -> list[str]:
    return _NO_LATIN.sub(" ", text.lower()).split()


def _ngrams(answer: Sequence[str], reference: Sequence[str], n: int) -> float:
    first, second = (
        Counter(zip(*(words[at:] for at in range(n)), strict=False))
        for words in (answer, reference)
    )
    return _plain_f((first & second).total(), first.total(), second.total())


def _plain_f(both: int, n_answer: int, n_reference: int) -> float:
    precision, recall = both / max(n_answer, 1), both / max(n_reference, 1)
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _hits(answer: Sequence[Sequence[str]], reference: Sequence[Sequence[str]]) -> int:
    """Count words of the reference that a line shares with it in order, each at most as often as in both texts."""
    remaining = Counter(word for line in answer for word in line) & Counter(
        word for line in reference for word in line
    )
    hits = 0
    for line in reference:
        places = set[int]().union(
            *(common_places(line, other, first_at_ties=True) or () for other in answer)
        )
        for word in (line[place] for place in sorted(places)):
            hits += remaining[word] > 0
            remaining[word] -= remaining[word] > 0
    return hits


def _sacrebleu(pairs: Sequence[Pair]) -> list[float]:
    sacrebleu: Any = import_module("sacrebleu")
    answers, references = ([*texts] for texts in zip(*pairs, strict=True))
    whole: float = sacrebleu.corpus_bleu(answers, [references]).score
    single = [sacrebleu.corpus_bleu([answer], [[reference]]).score for answer, reference in pairs]
    return [whole, mean(single), sacrebleu.metrics.BLEU().corpus_score(answers, [references]).score]


def _google_bleu(pairs: Sequence[Pair]) -> list[float]:
    gleu: Any = import_module("nltk.translate.gleu_score")
    divide: Any = import_module("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()
    answers, references = (
        [divide(text).split() for text in texts] for texts in zip(*pairs, strict=True)
    )
    score = gleu.corpus_gleu(list_of_references=[[each] for each in references], hypotheses=answers)
    return [score * 100]


def _nltk_bleu(pairs: Sequence[Pair]) -> list[float]:
    """Return sentence and corpus BLEU of orders 1 to 4, and their means, with answer and reference exchanged."""
    bleu: Any = import_module("nltk.translate.bleu_score")
    divide: Any = import_module("nltk.tokenize").word_tokenize
    answers, references = (
        [[divide(pair.answer)] for pair in pairs],
        [divide(pair.reference) for pair in pairs],
    )
    smooth = bleu.SmoothingFunction().method3
    figures: list[float] = []
    for n in range(1, 5):
        weights = [1 / n] * n + [0] * (4 - n)
        total = 0.0
        for one, other in zip(answers, references, strict=True):
            total += bleu.sentence_bleu(one, other, weights=weights, smoothing_function=smooth)
        figures.append(round(total / len(pairs) * 100, 4))
    figures.append(sum(figures) / 4)
    orders = (tuple(int(at == n) for at in range(4)) for n in range(4))
    whole = [
        round(bleu.corpus_bleu(answers, references, weights=order) * 100, 4) for order in orders
    ]
    return [*figures, *whole, sum(whole) / 4]


def _bert_score(pairs: Sequence[Pair]) -> list[float]:
    # Nothing is downloaded: the model must be in the cache of transformers.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    scorer: Any = import_module("bert_score")
    answers, references = ([*texts] for texts in zip(*pairs, strict=True))
    _, _, f1 = scorer.score(
        answers, references, model_type=_MODEL, lang="zh", rescale_with_baseline=True
    )
    return [f1.mean().item() * 100]


_PACKAGES: Sequence[tuple[Sequence[str], Callable[[Sequence[Pair]], list[float]], str]] = (
    (("google_bleu",), _google_bleu, f"nltk and sacrebleu: {install_command('bleu')}"),
    (
        ("hf_sacrebleu", "sacrebleu_sent", "sacrebleu_corpus"),
        _sacrebleu,
        f"sacrebleu: {install_command('bleu')}",
    ),
    (
        tuple(
            f"{kind}_bleu{each}"
            for kind in ("sent", "corpus")
            for each in ("1", "2", "3", "4", "_mean")
        ),
        _nltk_bleu,
        f"nltk and its punkt_tab: {install_command('bleu')}",
    ),
    (("bert_score_f1",), _bert_score, f"bert-score and {_MODEL}: {install_command('bertscore')}"),
)
