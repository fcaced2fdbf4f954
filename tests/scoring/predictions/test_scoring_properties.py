"""Whatever stands in a prediction file: figures or one typed error, the same each time, the gold with all points."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agrotools.benchmarks._dialogs import corrected_scorer as corrected
from agrotools.benchmarks._dialogs import published_scorer as published_dialogues
from agrotools.benchmarks._dialogs.published_scorer import Dialogue
from agrotools.benchmarks._dialogs.record_dialogues import errors_of_dialogues
from agrotools.benchmarks.agent_x import judge as judge_replies
from agrotools.benchmarks.agent_x import predictions as prediction_files
from agrotools.benchmarks.agent_x import published_scorer
from agrotools.benchmarks.agent_x import score as corrected_scorer
from agrotools.benchmarks.agent_x.predictions import errors_of_agent_x
from agrotools.benchmarks.agent_x.published_scorer import error_analysis
from agrotools.benchmarks.gta.score import RULES as GTA
from agrotools.benchmarks.thinkgeo.score import RULES as THINKGEO
from agrotools.core import BenchmarkError
from support.gta_files import answer, call, overlap, returned

RULES = (GTA, THINKGEO)
KEYS = "role content tool_calls function name arguments error gold prediction reasoning_steps final_answer value tool "
KEYS += "tool_used output thought Score goal_accuray whitelist blacklist type meta msg query_type"
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from(KEYS.split()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5),
    max_leaves=12,
)
names = st.sampled_from(
    "OCR DrawBox Plot Calculator TextToBbox TextToImage NoAction InvalidAction CountGivenObject".split()
)
arguments = st.dictionaries(
    st.sampled_from("image text bbox k expression".split()),
    st.text("ab1,() ", max_size=9) | st.integers(0, 3),
    max_size=3,
)
errors = st.none() | anything
messages = st.one_of(
    st.builds(call, names | anything, arguments | anything, errors),
    st.builds(answer, st.text(max_size=8) | anything),
    st.builds(returned, anything),
    anything,
)
turns = st.lists(messages, max_size=5)
references = (
    st.none()
    | st.just({"whitelist": [["6", "six"]], "blacklist": None})
    | st.lists(st.text(max_size=5), max_size=3)
    | anything
)
dialogues = st.builds(
    Dialogue,
    st.sampled_from("012"),
    turns | st.lists(turns, max_size=2) | anything,
    turns | st.lists(turns, max_size=2) | anything,
    references,
)
whole_answers = st.sampled_from(
    [
        ("6", {"whitelist": [["6"]], "blacklist": [["no"]]}),
        ("a cat", ["the cat", "a cat"]),
        ("", None),
        ("-2.5 kg", {"whitelist": [["-2.5"]], "blacklist": None}),
    ]
)


@st.composite
def golden(draw):
    """A gold that can be scored, in both modes."""
    calls = draw(st.lists(st.builds(call, names.filter(lambda name: "Action" not in name), arguments), max_size=4))
    text, reference = draw(whole_answers)
    return [*calls, answer(text)], reference


def figures(score, *given):
    try:
        return score(*given)
    except BenchmarkError as error:
        return error.message


def in_range(scores):
    assert not isinstance(scores, str)
    for name, figure in scores.metrics.items():
        assert figure.value is None or 0 <= figure.value <= 100, name
        assert figure.n >= 0


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(dialogues, max_size=3), st.sampled_from(RULES), st.booleans())
def test_any_dialogue_is_scored_or_refused(samples, rules, embeds):
    similarity = overlap if embeds else None
    for score in (
        published_dialogues.score_steps,
        published_dialogues.score_end,
        corrected.score_steps,
        corrected.score_end,
    ):
        first = figures(score, samples, rules, similarity)
        assert repr(first) == repr(figures(score, samples, rules, similarity))
        if "corrected" in score.__module__ and not isinstance(first, str):
            in_range(first)
    assert errors_of_dialogues(samples).counts == errors_of_dialogues(samples).counts


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(golden(), min_size=1, max_size=4), st.sampled_from(RULES))
def test_the_gold_has_all_points(made, rules):
    steps = [Dialogue(str(i), gold, gold, reference) for i, (gold, reference) in enumerate(made)]
    ends = [Dialogue(str(i), [gold], [gold], reference) for i, (gold, reference) in enumerate(made)]
    for scores in (corrected.score_steps(steps, rules, overlap), corrected.score_end(ends, rules, overlap)):
        assert all(figure.value in (None, 100) for figure in scores.metrics.values()), scores.metrics


@given(
    st.lists(anything, max_size=4)
    | st.lists(st.dictionaries(st.sampled_from("012"), anything, min_size=1, max_size=1), max_size=4),
    st.dictionaries(st.sampled_from("012"), anything, max_size=3),
)
def test_any_file_of_agent_x_is_scored_or_refused(items, replies):
    def words(text):
        return re.findall(r"\w+", text)[:21]

    for score, given_ in (
        (published_scorer.tool_call_statistics, (items,)),
        (error_analysis, (items, replies, words)),
        (published_scorer.aggregate, (list(filter(lambda row: isinstance(row, dict), items)),)),
    ):
        assert repr(figures(score, *given_)) == repr(figures(score, *given_))
    assert errors_of_agent_x(items, replies).total == len(items)
    predictions = figures(prediction_files.parse_predictions, items, "file")
    table = figures(judge_replies.parse_judgements, replies, "file")
    if isinstance(predictions, tuple) and not isinstance(table, str):
        in_range(corrected_scorer.score(table, predictions[0]))
