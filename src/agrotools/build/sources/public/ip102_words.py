"""What questions about pests say, in two languages: names to choose among, what somebody suspects, orders, families."""

import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from agrotools.build.sources.public.ip102_classes import Pest, known_as, others_on
from agrotools.build.templates.key_facts import facts_about
from agrotools.build.templates.slot_draft import JOINED

ORDERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "Coleoptera": ("beetles and weevils", "鞘翅目（甲虫、象甲）"),
        "Diptera": ("flies and midges", "双翅目（蝇、瘿蚊）"),
        "Hemiptera": ("true bugs, hoppers, aphids and scales", "半翅目（蝽、叶蝉、蚜虫、蚧）"),
        "Hymenoptera": ("sawflies and wasps", "膜翅目（叶蜂、小蜂）"),
        "Lepidoptera": ("moths and butterflies", "鳞翅目（蛾、蝶）"),
        "Orthoptera": ("grasshoppers and crickets", "直翅目（蝗虫、蝼蛄）"),
        "Thysanoptera": ("thrips", "缨翅目（蓟马）"),
        "Trombidiformes": ("mites", "绒螨目（螨类）"),
    }
)
"""What an order holds, in English and Chinese."""
_SUCKERS = ("Hemiptera", "Thysanoptera", "Trombidiformes")
TRAITS: Mapping[str, tuple[str, str, tuple[str, ...]]] = MappingProxyType(
    {
        "sooty mould": ("leaves behind honeydew that turns black with sooty mould", "分泌蜜露、诱发煤污病",
                        ("Coleoptera", "Diptera", "Lepidoptera", "Orthoptera", "Hymenoptera", "Thysanoptera",
                         "Trombidiformes")),
        "virus": ("carries plant viruses from one plant to the next", "能在植株间传播病毒病",
                  ("Coleoptera", "Diptera", "Lepidoptera", "Orthoptera", "Hymenoptera")),
        "tunnel": ("eats tunnels into stems, shoots, fruit or roots", "在茎、梢、果或根内蛀道为害", _SUCKERS),
    }
)  # fmt: skip
"""What an entry says of damage, by the word that tells: in English, in Chinese, and the orders that surely do not."""
_MOST_OTHERS = 9
_OFFERED = 4


def rng_of(*names: str) -> np.random.Generator:
    """Chance that depends on these names alone."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def zh(pest: Pest) -> str:
    """Its Chinese name; the scientific or English one where there is none."""
    names = pest.entry.names
    return names.zh[0] if names.zh else names.sci or names.en


def advice_topics(pest: Pest) -> tuple[str, ...]:
    """Topics on which key facts about a pest are held."""
    return tuple(topic for topic in ("symptoms", "management") if facts_about(pest.entry.id, topic))


def trait_of(pest: Pest) -> str | None:
    """A damage that its entry tells of."""
    told = " ".join(claim.text for claim in pest.entry.claims_of("symptoms"))
    return next((word for word in TRAITS if word in told), None)


def words_of(pest: Pest, rng: np.random.Generator) -> dict[str, str]:
    """Words about one pest: its names, other names to choose among, its order and family with others.

    ``at`` is the place of its names among what is looked up on its identification.
    """
    others = list(others_on(pest))
    drawn = [others[int(place)] for place in rng.permutation(len(others))]
    offered = sorted([pest, *drawn[: _OFFERED - 1]], key=lambda one: one.name)
    suspected = drawn[0] if drawn and rng.random() < 0.5 else pest
    taxonomy = pest.entry.taxonomy
    order, family = taxonomy.order or "", taxonomy.family or ""
    families = dict.fromkeys(one.entry.taxonomy.family for one in drawn if one.entry.taxonomy.family)
    near = [one for one in families if one != family][: _OFFERED - 1]
    other_orders = [one for one in rng.permutation(sorted(ORDERS)).tolist() if one != order][: _OFFERED - 1]
    words = {
        "crop": pest.crop,
        "name": pest.name,
        "id": pest.entry.id,
        "names": JOINED.join(known_as(pest)),
        "others": JOINED.join(dict.fromkeys(one.name for one in drawn[:_MOST_OTHERS])),
        "choices": JOINED.join(one.name for one in offered),
        "offered": _listed([one.name for one in offered], "or"),
        "offered_zh": "、".join(zh(one) for one in offered),
        "suspected": suspected.name,
        "suspected_zh": zh(suspected),
        "suspected_id": suspected.entry.id,
        "order": order,
        "other_orders": JOINED.join(other_orders),
        "family": family,
        "families": str(len(near) + 1) if family else "0",
        "other_families": JOINED.join(near),
        "offered_families": _listed(sorted([family, *near]), "or"),
        "at": "1" if pest.entry.claims_of("identification") else "0",
        "is_insect": str(order != "Trombidiformes"),
    }
    words |= {f"order_{place}": one for place, one in enumerate(sorted([order, *other_orders]), start=1)}
    return words | {f"family_{place}": one for place, one in enumerate(_filled_up(sorted([family, *near])), start=1)}


def pair_words(pests: Sequence[Pest], rng: np.random.Generator) -> dict[str, str]:
    """Words about several: which one, which order and which damage is sought."""
    sought = pests[int(rng.integers(len(pests)))]
    order = sought.entry.taxonomy.order or ""
    trait = next((word for one in pests if (word := trait_of(one)) and _alone(one, pests, word)), "")
    told = TRAITS.get(trait, ("", "", ()))
    return {
        "sought": sought.name,
        "sought_zh": zh(sought),
        "sought_id": sought.entry.id,
        "sought_order": order,
        "sought_order_means": ORDERS[order][0] if order else "",
        "sought_order_zh": ORDERS[order][1] if order else "",
        "trait_word": trait,
        "trait": told[0],
        "trait_zh": told[1],
    }


def _alone(pest: Pest, pests: Sequence[Pest], trait: str) -> bool:
    """Whether the others are of orders that surely do no such damage."""
    return all(one is pest or one.entry.taxonomy.order in TRAITS[trait][2] for one in pests)


def _listed(names: Sequence[str], last: str) -> str:
    return f" {last} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _filled_up(names: Sequence[str]) -> list[str]:
    """Four names; of fewer the last is repeated, which changes no choice."""
    return [*names, *[names[-1]] * _OFFERED][:_OFFERED]
