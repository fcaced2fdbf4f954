import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks.agent_x.judge import read_judge_score


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("{'Score': 0.8, 'Justification': 'it's fine'}", 0.8),
        ("{'Score': '0.8', 'Justification': \"the model's steps\"}", 0.8),
        ('{"Score": 1, "Justification": "x"}', 1),
        ('```json\n{"score": 0.25}\n```', 0.25),
        ("```python\n{'Score': .5,}\n```", 0.5),
        ("Here is my answer: {'Score': '0.5/1', 'Justification': 'x'} Thanks.", 0.5),
        ("{'Score': '4/5'}", 0.8),
        ("{'Score': '80%'}", 0.8),
        ("<think>{'Score': 0.1} no</think>{'Score': 0.9}", 0.9),
        ("first {'Score': 0.1}, then {'Score': 0.9}", 0.9),
        ("[{'Score': 0.4}]", 0.4),
        ("**Score**: 0.7\nJustification: fine", 0.7),
        ("Score = 1", 1),
        ("{'Score': 0.6, 'Justification': 'cut off", 0.6),
        ("0.75", 0.75),
        (" `1` ", 1),
        (0.5, 0.5),
        (1, 1),
        ({"Score": "0.5"}, 0.5),
        ("1e-1", 0.1),
    ],
)
def test_a_score_is_read(reply, value):
    assert read_judge_score(reply).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (None, "missing"),
        ("", "missing"),
        ("  ", "missing"),
        ("no idea", "unreadable"),
        ("{'Score': 'high'}", "unreadable"),
        ("{'Score': True}", "unreadable"),
        ("{'Score': None}", "unreadable"),
        ("{'Score': '1/0'}", "unreadable"),
        ("I counted 3 cups and 2 plates", "unreadable"),
        ({"x": 1}, "unreadable"),
        ([1], "unreadable"),
        ("{'Score': 7}", "not between 0 and 1"),
        ("{'Score': -0.5}", "not between 0 and 1"),
        (10**400, "not between 0 and 1"),
        (float("nan"), "unreadable"),
    ],
)
def test_what_is_no_score_is_told_apart(reply, rule):
    assert read_judge_score(reply) == (None, rule)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
replies = st.text("{}'\":,Score 0.5/1%\n`", max_size=40)


@given(json_values | replies)
def test_any_reply_is_read_or_not(reply):
    read = read_judge_score(reply)
    assert read.value is None or 0 <= read.value <= 1
    assert repr(read_judge_score(reply)) == repr(read)
