from hypothesis import given
from hypothesis import strategies as st

from agrotools.build.templates.key_facts import topics_with_facts
from agrotools.build.templates.wording import MOST_OF_ONE, expanded, sentences


def test_alternatives_give_every_combination_once_and_brackets_without_bars_stay():
    ways = expanded(["[How many|What number of] trees [stand|are] in {one}?", "Count the trees[|, please]."])
    assert set(ways) == {
        "How many trees stand in {one}?", "How many trees are in {one}?", "What number of trees stand in {one}?",
        "What number of trees are in {one}?", "Count the trees.", "Count the trees, please.",
    }  # fmt: skip
    assert len(ways) == 6
    assert {ways[0].split()[0], ways[1].split()[0]} == {"How", "Count"} or ways[1].startswith("Count")
    assert expanded(["What is the share of [A]?"]) == ("What is the share of [A]?",)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_as_many_ways_as_combinations_up_to_a_limit(sizes):
    wording = "ask " + " ".join(
        "[" + "|".join(f"w{k}x{n}" for k in range(size)) + "|z]" for n, size in enumerate(sizes)
    )
    every = 1
    for size in sizes:
        every *= size + 1
    ways = expanded([wording])
    assert len(ways) == len(set(ways)) == min(every, MOST_OF_ONE)
    assert not any("[" in way or "|" in way for way in ways)


def test_sentences_differ_only_by_what_is_said():
    asked = set(sentences("Which is worse, image_1.jpg or image_2.jpg? Our limit is 12.5 %."))
    assert len(asked) == 2
    assert asked.intersection(sentences("Hello there. our limit is 7 %."))
    assert asked.intersection(sentences("which is worse, image_3.png or x.jpg?"))
    assert not asked.intersection(sentences("Which one is worse?"))
    assert sentences("哪一张更严重？请只说文件名。") == ("哪一张更严重", "请只说文件名")
    assert sentences("比较image_1.jpg和image_2.jpg的病情。") == ("比较#和#的病情",)


def test_whoever_reads_the_entry_can_state_every_key_fact():
    from agrotools.build.templates.key_facts import facts_about
    from agrotools.scoring.open_text import read_fact
    from agrotools.tools import lookup_agronomy

    denied: list[tuple[str, str]] = []
    for entry, topic in topics_with_facts():
        found = lookup_agronomy(query=entry.split(".")[1].replace("_", " "), topic=topic, kb_id=entry, top_k=1)
        for fact in facts_about(entry, topic):
            read = read_fact(fact, found.hits[0].text)
            assert read.said or read.denied, (entry, topic, fact)
            denied += [] if read.said else [(entry, fact.phrases[0])]
    # The plain rule takes "improve drainage and do not over-water" for a denial of both.
    assert len(denied) <= 3, denied
