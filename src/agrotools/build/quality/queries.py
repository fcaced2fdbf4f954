"""Questions that are nearly the same: they share a sentence once numbers and names of files are left out."""

from collections.abc import Iterable
from itertools import islice

from agrotools.build.quality.finding import Finding
from agrotools.build.templates.wording import sentences
from agrotools.core import Sample

_SHORT = 12
"""Characters; a shorter sentence ("Thank you.") is nothing that a question could be known by."""


def check_queries(samples: Iterable[Sample]) -> Iterable[Finding]:
    """Checks ``same_query`` (all sentences are those of an earlier question) and ``shared_sentence``."""
    whole: dict[tuple[str, ...], str] = {}
    first: dict[str, str] = {}
    for sample in samples:
        own = sentences(sample.query)
        if own in whole:
            message = f"asks the same as {whole[own]}, but for numbers and names of files"
            yield Finding(id=sample.id, check="same_query", severity="warning", message=message)
        else:
            shared = (text for text in own if text in first and len(text) >= _SHORT)
            for text in islice(shared, 1):
                message = f"shares a sentence with {first[text]}: {text!r}"
                yield Finding(id=sample.id, check="shared_sentence", severity="info", message=message)
        whole.setdefault(own, sample.id)
        for text in own:
            first.setdefault(text, sample.id)
