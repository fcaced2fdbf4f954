"""Read random replies to the forms of the tests, and count readings that know the gold, or agree with two golds.

    python performance/fuzz_replies.py [--texts 500000] [--seed 0]

A text is made of words of real replies: as lines of the form, as a sentence, or as JSON. For each slot, the text is
scored with every gold that the slot might have. The scores must add up to at most 1, because no reply is right for two
golds, and the reading must be the same with each of them. Printed: the number of texts, and of those that break a rule.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from agrotools.core import Slot

TESTS = Path(__file__).parents[1] / "tests" / "engine" / "text"
LONGEST = 8
"""Words of a value; the longest values of real replies that are read have about as many."""


def made_text(slots: Sequence[Slot], words: Sequence[str], random_: random.Random) -> str:
    """Return a random reply: the form, one value in all lines, a bare text, or JSON."""

    def value() -> str:
        return " ".join(random_.choices(words, k=random_.randint(1, LONGEST)))

    form = random_.choice(("own lines", "lines", "bare", "object"))
    if form == "own lines":
        return "\n".join(f"{slot.name}: {value()}" for slot in slots)
    if form == "object":
        return json.dumps({slot.name: value() for slot in slots})
    same = value()
    return same if form == "bare" else "\n".join(f"{slot.name}: {same}" for slot in slots)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    from test_replies import FORMS, PIECES, read_with_each_gold

    random_ = random.Random(arguments.seed)
    names = sorted(FORMS)
    n_read = n_two_golds = n_knowing = 0
    for _ in range(arguments.texts):
        slots = FORMS[random_.choice(names)]
        slot = random_.choice(slots)
        text = made_text(slots, PIECES, random_)
        readings, total = read_with_each_gold(slots, slot, text)
        n_read += readings[0] is not None
        n_two_golds += total > 1
        n_knowing += any(reading != readings[0] for reading in readings)
    print(
        f"{arguments.texts} texts, {n_read} with a form; agree with two golds: {n_two_golds};",
        end=" ",
    )
    print(f"read otherwise with another gold: {n_knowing}")


if __name__ == "__main__":
    main()
