"""Hashes of files, and two-fold splits by them that anyone can recompute: by rank, never by order or name of files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pairs_by_hash(hashes: Iterable[str]) -> list[list[str]]:
    """Distinct ``hashes`` in ascending order, two by two: ranks 0 and 1 are pair 0, ranks 2 and 3 pair 1...

    The last pair holds one hash where their number is odd.
    """
    ranked = sorted(set(hashes))
    return [ranked[start : start + 2] for start in range(0, len(ranked), 2)]


def fold_of(hashes: Iterable[str]) -> dict[str, int]:
    """The fold of each hash: 0 for members of pairs 0, 2, 4... and 1 for members of pairs 1, 3, 5...

    Both members of a pair are always in the same fold, so a question on the two of them has one fold.
    """
    return {member: rank % 2 for rank, pair in enumerate(pairs_by_hash(hashes)) for member in pair}
