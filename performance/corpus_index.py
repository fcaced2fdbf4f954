"""How long indexing a corpus takes, in how much memory, and how fast and how well the index is searched.

Figures of docs/retrieval.md, "Recall, time and memory".

    python performance/corpus_index.py --megabytes 1000 [--seed S] [--dir DIR] [--json]
    python performance/corpus_index.py --questions FILE [--share 0.05]

Writes a corpus of the given size of made-up Chinese text: words of one to four characters, drawn by Zipf's law from a
vocabulary of 80,000, a few of them Latin words and numbers; sentences, documents of uneven length. 300 sentences are
planted in it, each of ten words of middling frequency. A question holds six words of one of them in another order,
among four common words; it is answered where a passage with the sentence is among the first five.

Indexing runs in a process of its own, as ``agrotools tools kb index``. Its memory is the largest that Linux saw
(VmHWM), code and libraries included. Searches run in this process: single ones one after the other, long ones (ten
questions in one, as long as a question with its options), both in processor time, and on eight threads at once, which
have to find the same.

With ``--questions``, the corpus is the answers of a file of AgriEval's open questions, and each question is answered
where its own answer is found. ``--share`` limits the matches of a search to this share of the passages, as a larger
corpus does.
"""

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

PLANTED = 300
_VOCABULARY = 80_000
_CHARACTERS = 3_500
_MIDDLING = (500, 20_000)
_WORDS_AT_ONCE = 1 << 20
_CHILD = """
import atexit, sys
from pathlib import Path

def tell_peak(path=sys.argv.pop(1)):
    lines = Path("/proc/self/status").read_text().splitlines()
    Path(path).write_text(next(line.split()[1] for line in lines if line.startswith("VmHWM")))

atexit.register(tell_peak)
from agrotools.cli.main import main
main()
"""
"""Kilobytes at the peak: wait4 would tell the larger of the child's and of this process's at its start."""


def vocabulary(rng: random.Random) -> list[str]:
    """Distinct words, the commonest first."""
    characters = [chr(point) for point in rng.sample(range(0x4E00, 0x9FA6), _CHARACTERS)]
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        kind = rng.random()
        if kind < 0.01:
            word = f" {''.join(rng.choices('abcdefghijklmnopqrstuvwxyz', k=rng.randint(3, 9)))} "
        elif kind < 0.02:
            word = str(rng.randint(0, 9999) / rng.choice((1, 10)))
        else:
            length = rng.choices((1, 2, 3, 4), (1, 6, 2, 1))[0]
            # The first characters are the commoner ones, as in real text.
            word = "".join(characters[int(_CHARACTERS * rng.random() ** 2)] for _ in range(length))
        words[word] = None
    return list(words)


def planted(words: Sequence[str], rng: random.Random) -> list[tuple[str, str]]:
    """Sentences, and questions for them."""
    found: list[tuple[str, str]] = []
    for _ in range(PLANTED):
        chosen = [words[rng.randint(*_MIDDLING)].strip() for _ in range(10)]
        sentence = f"{''.join(chosen[:5])}，{''.join(chosen[5:])}。"
        asked = rng.sample(chosen, 6) + [words[rng.randrange(100)].strip() for _ in range(4)]
        rng.shuffle(asked)
        found.append((sentence, "".join(asked)))
    return found


def documents(words: Sequence[str], seed: int) -> Iterator[list[str]]:
    """Documents without end, as sentences."""
    numbers = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, len(words) + 1)
    ladder = np.cumsum(shares / shares.sum())
    table = np.array(words, object)
    while True:
        drawn = table[
            np.minimum(np.searchsorted(ladder, numbers.random(_WORDS_AT_ONCE)), len(words) - 1)
        ]
        ends = np.cumsum(numbers.integers(4, 24, _WORDS_AT_ONCE // 4))
        sentences = ["".join(part) + "。" for part in np.split(drawn, ends[ends < len(drawn)])]
        at = 0
        while at < len(sentences):
            length = 1 + int(numbers.lognormal(3.0, 0.8))
            yield sentences[at : at + length]
            at += length


def write_corpus(path: Path, size: int, seed: int) -> list[tuple[str, str]]:
    """Write JSONL of about ``size`` bytes; returns what is planted in it."""
    rng = random.Random(seed)
    words = vocabulary(rng)
    hidden = planted(words, rng)
    places = sorted(rng.random() * size for _ in hidden)
    written = number = done = 0
    with path.open("wb") as file:
        for sentences in documents(words, seed):
            while done < len(places) and places[done] <= written:
                sentences.insert(rng.randint(0, len(sentences)), hidden[done][0])
                done += 1
            number += 1
            row = {
                "id": number,
                "title": words[rng.randrange(20_000)].strip(),
                "text": "".join(sentences),
            }
            written += file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            if written >= size:
                return hidden[:done]
    raise AssertionError("documents never end")


def build(corpus: Path, out: Path) -> dict[str, Any]:
    """Index in a process of its own."""
    out.unlink(missing_ok=True)  # or it would only be opened
    told = out.with_name("peak")
    command = [
        sys.executable,
        "-c",
        _CHILD,
        str(told),
        "kb",
        "index",
        str(corpus),
        "--out",
        str(out),
    ]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    used, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    return {
        "wall_s": round(took, 1),
        "processor_s": round(used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, 1),
        "peak_mb": round(int(told.read_text()) * 1024 / 1e6, 1),
        "index_mb": round(out.stat().st_size / 1e6),
        "mb_per_s": round(corpus.stat().st_size / 1e6 / took, 2),
    }


def search(out: Path, hidden: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Time and hits of the questions, one after the other, ten in one, and on eight threads."""
    from agrotools.knowledge.corpus import CorpusIndex

    started = time.monotonic()
    index = CorpusIndex(out)
    opened = time.monotonic() - started
    index.search(
        "".join(question for _, question in hidden[:20])
    )  # what is read first comes from the disk
    single: list[float] = []
    answers = []
    for _, question in hidden:
        started = time.process_time()
        answers.append(index.search(question, 5))
        single.append((time.process_time() - started) * 1000)
    long: list[float] = []
    for start in range(0, len(hidden) - 9, 10):
        started = time.process_time()
        index.search("".join(question for _, question in hidden[start : start + 10]), 5)
        long.append((time.process_time() - started) * 1000)
    started = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda pair: index.search(pair[1], 5), hidden))
    threads_s = time.perf_counter() - started
    found = [
        any(sentence in passage.text for passage in answer)
        for (sentence, _), answer in zip(hidden, answers, strict=True)
    ]
    first = [
        bool(answer) and sentence in answer[0].text
        for (sentence, _), answer in zip(hidden, answers, strict=True)
    ]
    return {
        "documents": index.manifest["documents"],
        "passages": index.manifest["passages"],
        "open_ms": round(opened * 1000),
        "question_characters": round(statistics.mean(len(question) for _, question in hidden)),
        "ms_median": round(statistics.median(single), 2),
        "ms_p95": round(statistics.quantiles(single, n=20)[-1], 2),
        "long_characters": round(10 * statistics.mean(len(question) for _, question in hidden)),
        "long_ms_median": round(statistics.median(long), 2),
        "per_s_on_8_threads": round(len(hidden) / threads_s),
        "threads_agree": again == answers,
        "planted": len(hidden),
        "found_first": round(statistics.mean(first), 4),
        "found_in_5": round(statistics.mean(found), 4),
    }


def find_own_answers(path: Path, share: float | None) -> dict[str, Any]:
    """Share of open questions whose own answer is first, and among the first five."""
    from agrotools.knowledge import corpus as index
    from agrotools.knowledge.corpus import build_index

    rows = json.loads(path.read_text(encoding="utf-8"))
    if share is not None:
        index._MOST_MATCHES, index._MOST_SHARE, index._FREQUENT = 0, share, 1
    places: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "answers.jsonl"
        lines = (
            json.dumps({"url": f"answer://{at}", "text": row["answer"]})
            for at, row in enumerate(rows)
        )
        corpus.write_text("\n".join(lines))
        built = build_index(corpus, Path(folder) / "index")
        for at, row in enumerate(rows):
            found = [passage.source for passage in built.search(row["question"], 5)]
            places.append(found.index(f"answer://{at}") if f"answer://{at}" in found else 5)
    return {
        "questions": len(rows),
        "passages": built.manifest["passages"],
        "found_first": round(statistics.mean(place == 0 for place in places), 4),
        "found_in_5": round(statistics.mean(place < 5 for place in places), 4),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--dir", type=Path, help="where to work; a temporary folder, which is removed, if left out"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--questions",
        type=Path,
        help="file of AgriEval's open questions to search for in its answers",
    )
    parser.add_argument("--share", type=float, help="share of passages that a search ranks")
    options = parser.parse_args()
    if options.questions:
        print(json.dumps(find_own_answers(options.questions, options.share), indent=2))
        return 0
    folder = options.dir or Path(tempfile.mkdtemp(prefix="corpus-index-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        corpus = folder / "corpus.jsonl"
        hidden = write_corpus(corpus, options.megabytes * 1_000_000, options.seed)
        figures = {"corpus_mb": round(corpus.stat().st_size / 1e6)}
        figures |= build(corpus, folder / "index")
        figures |= search(folder / "index", hidden)
    finally:
        if options.dir is None:
            shutil.rmtree(folder)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:22} {value}")
    return 0 if figures["threads_agree"] else 1


if __name__ == "__main__":
    sys.exit(main())
