"""Content rules for entries: every claim has a source, no dose, no brand, no false "verified"."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from agrotools.core.texts import spell_location
from agrotools.knowledge.entries import (
    FOLDER_OF_KIND,
    SHIPPED,
    Claim,
    KnowledgeEntry,
    KnowledgeFault,
    read_entry,
)
from agrotools.knowledge.words import known_crops, word_list
from agrotools.text.normalise import CJK

_AMOUNT = (
    r"(?:k?g|mg|µg|ug|g a\.?[is]\.?|m[lL]|[lL]|c[cC]|lit(?:er|re)s?|grams?|kilograms?|pounds?|lbs?|oz|ounces?|"
    r"fl\.? ?oz|gallons?|gal|pints?|pt|quarts?|qt|jin|liang)"
)
_OVER = (
    r"(?:ha|hectares?|acres?|ac|mu|m2|m²|m\^2|sq\.? ?m|[lL]|lit(?:er|re)s?|gal(?:lons?)?|kg|kilograms?|100 ?[lL]|"
    r"tree|plant|vine|t|tonnes?)"
)
_DOSE = re.compile(
    rf"(?<![\w.])\d[\d.,]*(?:\s?(?:-|–|to)\s?\d[\d.,]*)?\s*{_AMOUNT}(?:\s+(?:of\s+)?[\w-]+){{0,4}}?"
    rf"\s*(?:/|\bper\b|\ban?\b|\bin\b|\beach\b)\s*(?:\d+\s*)?{_OVER}\b"
)
_DILUTION = re.compile(
    r"\b1\s?:\s?\d{2,5}\b.*\b(?:dilut|spray|solution)"
    r"|\bdilut\w*\b.*\b\d{2,5}\s*(?:-fold|times)",
    re.IGNORECASE,
)
_FORMULATION = re.compile(
    r"\b\d{1,3}\s?%?\s?(?:EC|SC|WP|WG|SL|WDG|EW|ULV|FS|OD)\b|\b\d[\d.]*\s?%\s+a\.?i\.?\b"
)
_CHINESE_DOSE = re.compile(
    r"\d[\d.]*\s*(?:克|毫升|千克|公斤|升|两|斤)\s*/?\s*(?:每|/)?\s*(?:亩|公顷|株|升水|公斤水)"
)
_MARK = re.compile(r"[®™©]|\((?:R|TM)\)")
_ONLY_CJK = re.compile(rf"[{CJK}0-9A-Za-z·（）()、\-]+")
_PRODUCTS = word_list("products")
"""Names under which pesticides are sold. The list is not complete; it catches the most common slips."""
_PLAIN_PRODUCTS = word_list("plain_products")
"""Products whose name is also plain English or a person's name; matched only if capitalised inside a sentence."""


def check_entry(
    entry: KnowledgeEntry, file: str, crops: frozenset[str] | None = None
) -> list[KnowledgeFault]:
    """Return all rule violations of one entry.

    Args:
        entry: entry as read.
        file: file name for the faults.
        crops: names allowed in ``crops``; default :func:`known_crops`.
    """
    known = known_crops() if crops is None else crops
    faults = [*_identity(entry), *_names(entry), *_crops(entry, known), *_sources(entry)]
    for number, claim in enumerate(entry.claims):
        faults += [
            (("claims", number, *where), message, hint)
            for where, message, hint in _claim(entry, claim)
        ]
    return [
        KnowledgeFault(file=file, field=spell_location(where), message=message, hint=hint)
        for where, message, hint in faults
    ]


def check_files(
    paths: Iterable[Path], among: Iterable[KnowledgeEntry] = ()
) -> tuple[list[KnowledgeEntry], list[KnowledgeFault]]:
    """Return the readable entries of the files, and the faults of all files.

    Args:
        paths: TOML files.
        among: entries of the base they will be added to, whose ids are taken and whose crops are known.
    """
    read: list[tuple[Path, KnowledgeEntry]] = []
    faults: list[KnowledgeFault] = []
    for path in paths:
        result = read_entry(path)
        if isinstance(result, KnowledgeEntry):
            read.append((path, result))
        else:
            faults += result
    others = tuple(among)
    crops = known_crops((*others, *(entry for _, entry in read)))
    source_of_id = {entry.id: "the knowledge base" for entry in others}
    for path, entry in read:
        if entry.id in source_of_id:
            message = f"{entry.id} is an id in {source_of_id[entry.id]} already"
            faults.append(
                KnowledgeFault(
                    file=str(path), field="id", message=message, hint="choose another id"
                )
            )
        source_of_id.setdefault(entry.id, path.name)
        faults += check_entry(entry, str(path), crops)
        faults += _place(entry, path)
    return [entry for _, entry in read], faults


Violation = tuple[tuple[str | int, ...], str, str]


def _identity(entry: KnowledgeEntry) -> Iterator[Violation]:
    if entry.id.partition(".")[0] != entry.kind:
        yield (
            ("id",),
            f"an entry of kind {entry.kind} has an id {entry.kind}.NAME, not {entry.id}",
            "",
        )
    if entry.coverage != "stub" and not entry.claims:
        yield (
            ("coverage",),
            f"{entry.coverage}, but nothing is claimed",
            'without claims an entry is a "stub"',
        )


def _names(entry: KnowledgeEntry) -> Iterator[Violation]:
    for number, name in enumerate(entry.names.zh):
        if not _ONLY_CJK.fullmatch(name) or not re.search(f"[{CJK}]", name):
            yield ("names", "zh", number), f"{name!r} is not written in Chinese characters", ""
    for where, name in (
        (("names", "en"), entry.names.en),
        (("names", "sci"), entry.names.sci or ""),
        *(
            (("names", "aliases", number), alias)
            for number, alias in enumerate(entry.names.aliases)
        ),
    ):
        if name != name.strip():
            yield where, f"{name!r} begins or ends with a space", ""
        if re.search(f"[{CJK}]", name):
            yield where, f"{name!r} holds Chinese characters", "Chinese names belong into names.zh"
        if _MARK.search(name):
            yield where, f"{name!r} carries a trade mark sign", "use the plain name"
    if entry.names.sci and not entry.names.sci[0].isupper():
        yield ("names", "sci"), f"a scientific name begins with a capital: {entry.names.sci!r}", ""


def _crops(entry: KnowledgeEntry, known: frozenset[str]) -> Iterator[Violation]:
    for number, crop in enumerate(entry.crops):
        if crop.lower() not in known:
            close = get_close_matches(crop.lower(), known, n=3, cutoff=0.6)
            hint = (
                f"did you mean {' or '.join(close)}?"
                if close
                else "plain singular English names of crops are known"
            )
            yield ("crops", number), f"no crop is known as {crop!r}", hint


def _sources(entry: KnowledgeEntry) -> Iterator[Violation]:
    for key, source in entry.sources.items():
        if source.how in ("page read", "excerpt read") and source.url is None:
            yield (
                ("sources", key, "url"),
                "a page that was read has an address",
                'add url, or change "how"',
            )
        used = any(key in claim.sources for claim in entry.claims)
        # Names and labels may come from a data set's paper without being claims.
        if entry.claims and not used and source.how != "cited in data set paper":
            yield (
                ("sources", key),
                "no claim rests on this source",
                "name it in a claim, or leave it out",
            )
    if entry.coverage == "verified" and not any(
        source.how == "page read" for source in entry.sources.values()
    ):
        yield ("coverage",), "verified, but no page was read", 'use "partial" until a page was read'


def _claim(entry: KnowledgeEntry, claim: Claim) -> Iterator[Violation]:
    if not claim.sources:
        yield ("sources",), "a claim needs at least one source", ""
    for key in claim.sources:
        source = entry.sources.get(key)
        if source is None:
            hint = f"sources: {', '.join(entry.sources)}" if entry.sources else "add [sources.s1]"
            yield ("sources",), f"there is no source {key!r}", hint
        elif entry.coverage == "verified" and source.how != "page read":
            hint = "read a page that says so, or use partial"
            yield ("sources",), f'verified, but this rests on "{source.how}"', hint
    if claim.section == "thresholds":
        for name in ("value", "unit", "condition", "region"):
            if getattr(claim, name) is None:
                yield (name,), f"a threshold says its {name}", ""
    if claim.section == "management" and claim.type is None:
        yield (
            ("type",),
            "a management claim says its type",
            "cultural, biological, chemical, monitoring or physical",
        )
    if claim.section != "management" and claim.type is not None:
        yield ("type",), f"a claim on {claim.section} has no type", ""
    if claim.formula is not None and claim.section != "reference_values":
        yield ("formula",), f"a claim on {claim.section} has no formula", ""
    for name in ("text", "condition"):
        yield from (
            ((name,), message, hint)
            for message, hint in forbidden(getattr(claim, name) or "", claim.section)
        )
    if claim.section == "management" and claim.unit is not None:
        yield (
            ("unit",),
            "a management claim carries no figures",
            "doses belong on the label of a product",
        )


def forbidden(text: str, section: str = "management") -> Iterator[tuple[str, str]]:
    """Yield message and hint for forbidden text: doses (in management), products and trade marks (anywhere)."""
    if _MARK.search(text):
        yield "a trade mark sign", "name no products"
    for word in re.findall(r"[A-Za-z][A-Za-z-]+", text):
        plain = word.lower()
        if plain in _PRODUCTS and (
            plain not in _PLAIN_PRODUCTS or (word[0].isupper() and not text.startswith(word))
        ):
            yield f"{word!r} is the name of a product", "name no products; say the kind of measure"
    if section == "management":
        for pattern in (_DOSE, _DILUTION, _FORMULATION, _CHINESE_DOSE):
            if hit := pattern.search(text):
                yield f"{hit[0]!r} is a dose", "doses belong on the label of a product"
                break


def _place(entry: KnowledgeEntry, path: Path) -> Iterator[KnowledgeFault]:
    """Check that a shipped entry is in the folder of its kind, in a file named after it."""
    if not path.is_relative_to(SHIPPED):
        return
    expected = SHIPPED / FOLDER_OF_KIND[entry.kind] / f"{entry.slug}.toml"
    if path != expected:
        message = f"{entry.id} belongs into {FOLDER_OF_KIND[entry.kind]}/{entry.slug}.toml"
        yield KnowledgeFault(file=str(path), field="id", message=message)
