"""How many slips of the hand lie between two words."""


def edit_distance(a: str, b: str) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between ``a`` and ``b`` (optimal string alignment).

    Source: bit-parallel, Hyyro 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances";
    each character of ``b`` costs a few operations on integers of ``len(a)`` bits.
    """
    if a == b:
        return 0
    if not a or not b:
        return len(a) + len(b)
    where: dict[str, int] = {}
    for at, char in enumerate(a):
        where[char] = where.get(char, 0) | 1 << at
    every, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    positive, negative, diagonal, before = every, 0, 0, 0
    distance = len(a)
    for char in b:
        match = where.get(char, 0)
        swapped = ((~diagonal & match) << 1) & before
        diagonal = (((((match & positive) + positive) ^ positive) | match | negative) | swapped) & every
        up = (negative | ~(diagonal | positive)) & every
        down = positive & diagonal
        if up & last:
            distance += 1
        elif down & last:
            distance -= 1
        up = (up << 1 | 1) & every
        down = (down << 1) & every
        positive = (down | ~(diagonal | up)) & every
        negative = up & diagonal
        before = match
    return distance


def similarity(a: str, b: str) -> float:
    """1 for equal texts, 0 for texts of which nothing fits: 1 - distance / length of the longer."""
    longest = max(len(a), len(b))
    return 1.0 if not longest else 1.0 - edit_distance(a, b) / longest
