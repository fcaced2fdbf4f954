from collections import Counter

import pytest

from agrotools.core import BenchmarkError
from agrotools_build.choosing import ANSWER_TYPES, SOURCE_PCTS, Offer, allocate, published


def test_the_published_figures_and_a_fifth_of_them():
    whole = published()
    assert (whole.queries, whole.calls, whole.files) == (539, 1447, 1097)
    assert whole.distinct_tools == {1: 59, 2: 412, 3: 49, 4: 19}
    assert whole.answer_types == {"tolerance": 177, "exact": 154, "plot": 139, "open_text": 69}
    assert (whole.sources["ip102"], whole.sources["weedmap"], whole.sources["open_canopy"]) == (
        115,
        62,
        55,
    )
    assert len(whole.sources) == 12
    assert all(
        0.0334 * 539 <= number <= 0.0761 * 539 for number in sorted(whole.sources.values())[:9]
    )
    small = published(108)
    assert tuple(small.distinct_tools.values()) == (12, 82, 10, 4)
    assert tuple(small.answer_types.values()) == (35, 31, 28, 14)
    assert small.calls == 290


def _offers() -> dict[Offer, int]:
    """Of each source, questions with every number of tools and every answer type, with few and with many calls."""
    offers = {}
    for source in SOURCE_PCTS:
        for tools in (1, 2, 3, 4):
            for answer in ANSWER_TYPES:
                for extra, files in ((0, 1), (0, 2), (1, 2), (3, 4)):
                    name = f"{source}_{tools}_{answer}_{extra}_{files}"
                    offers[
                        Offer(name, f"task {tools}", source, answer, tools, tools + extra, files)
                    ] = 20
    return offers


@pytest.mark.parametrize("queries", [108, 539])
def test_marginals_that_can_be_met_are_met_exactly_and_templates_used_evenly(queries):
    offers = _offers()
    wanted = published(queries)
    counts = allocate(offers, wanted, {offer.template: 34 for offer in offers})
    asked = [offer for offer, number in counts.items() for _ in range(number)]
    assert Counter(offer.tools for offer in asked) == wanted.distinct_tools
    assert Counter(offer.answer_type for offer in asked) == wanted.answer_types
    assert Counter(offer.source for offer in asked) == wanted.sources
    assert (sum(offer.calls for offer in asked), sum(offer.files for offer in asked)) == (
        wanted.calls,
        wanted.files,
    )
    assert max(counts.values()) <= 20
    assert len(counts) > queries / 6


def test_what_cannot_be_met_leaves_the_rest_as_near_as_it_can_be():
    offers = {
        offer: number for offer, number in _offers().items() if offer.answer_type != "open_text"
    }
    wanted = published(108)
    counts = allocate(offers, wanted, {offer.template: 34 for offer in offers})
    assert sum(counts.values()) == 108
    asked = [offer for offer, number in counts.items() for _ in range(number)]
    assert Counter(offer.tools for offer in asked) == wanted.distinct_tools
    counts = allocate(_offers(), published(108), {offer.template: 1 for offer in _offers()})
    assert max(counts.values()) == 1


def test_a_source_gives_what_it_can_and_never_more_than_its_share():
    offers = {
        offer: number for offer, number in _offers().items() if offer.source in ("clcd", "ip102")
    }
    few = {offer: 1 for offer in offers if offer.source == "clcd" and offer.files == 1}
    wanted = published(539)
    counts = allocate(
        few | {offer: 20 for offer in offers if offer.source == "ip102"},
        wanted,
        dict.fromkeys((offer.template for offer in offers), 34),
    )
    made = Counter[str]()
    for offer, number in counts.items():
        made[offer.source] += number
    assert made == {"clcd": len(few), "ip102": wanted.sources["ip102"]}
    with pytest.raises(BenchmarkError, match="no question can be asked"):
        allocate({}, wanted, {})
