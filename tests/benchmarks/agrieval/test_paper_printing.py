"""The tables of the AgriEval paper on a terminal and on a page."""

import re
from html.parser import HTMLParser

import pytest

from agrotools.benchmarks.agrieval.paper_printing import agrieval_parts
from agrotools.benchmarks.agrieval.report import agrieval_section
from agrotools.report.layout import PLAIN_WIDTH, rendered
from agrotools.report.published import paper
from support.agrieval_results import PLAN, result, without


def agrieval_text(results, *, width=PLAIN_WIDTH, **options):
    return rendered(agrieval_parts(results, **options), width)


GOLDEN = """\

AgriEval, Table 8. Zero-shot accuracy by domain
                               PP       Aqua         GS        TCH       Fore        AST    Overall
                             n 42       n 42       n 42       n 42       n 42       n 42      n 252
───────────────────────────────────────────────────────────────────────────────────────────────────
model-a                      42.9       42.9       38.1       28.6       47.6       42.9       40.5
                        28.4–58.7  28.4–58.7  24.3–54.1  16.6–44.6  32.6–63.1  28.4–58.7  34.5–46.7
published †¹
  items (implied)           11402        520        130        387        509       1542      14490
  GPT-4o                    51.04      46.54      48.46      41.34      42.63      48.31      50.01
"""


def blocks_of(text):
    """The parts of a text between blank lines, by their first lines."""
    return {part.split("\n", 1)[0]: part for part in text.strip().split("\n\n")}


def test_a_table_has_values_intervals_numbers_of_items_and_published_lines():
    parts = agrieval_parts([result()], models=["gpt-4o"], numbers=["8"])
    text = rendered(parts, 100)
    assert text.startswith(GOLDEN)
    assert "¹ † The scorer in the authors' repository" in text


def test_everything_fits_a_terminal_and_is_in_parts_by_level():
    results = [result(shift=(0, 1)), result(setting="cot", shift=(2, 3)), result(setting="few-shot", shift=(1, 1))]
    text = agrieval_text(results)
    assert max(map(len, text.splitlines())) <= 101
    titles = [line for line in text.splitlines() if line.startswith("AgriEval")]
    assert "AgriEval, Table 7. Zero-shot accuracy by task: Memorization, Understanding" in titles
    assert "AgriEval, Table 7. Zero-shot accuracy by task: Inference" in titles
    assert not any("Table 2." in title or "Table 3." in title for title in titles)
    assert titles[-1] == "AgriEval. Mean and standard deviation over epochs"


def test_selections_are_shown_where_they_are_asked_for():
    text = rendered(agrieval_parts([result()], numbers=["2"]), 100)
    assert "AgriEval, Table 2. Zero-shot accuracy by task, selected models" in text
    assert "Table 7." not in text


def test_some_published_models_are_those_that_were_run_the_best_and_the_followed_ones():
    text = rendered(agrieval_parts([result(model="siliconflow:org/yi-1.5-9b-chat")], numbers=["8"]), 100)
    shown = set(re.findall(r"^  (\S+) +\d", text, re.MULTILINE))
    assert shown == {
        "Yi-1.5-9B-Chat",
        "Qwen2-72B-Instruct",
        "Qwen-Plus",
        "Qwen2.5-3B-Instruct",
        "Qwen2.5-14B-Instruct",
        "GLM-4-9b-Chat",
        "GPT-3.5-Turbo",
        "GPT-4o-mini",
    }
    everything = rendered(agrieval_parts([result()], numbers=["8"], models="all"), 100)
    assert len(re.findall(r"^  (\S+) +\d", everything, re.MULTILINE)) == 51
    none = rendered(agrieval_parts([result()], numbers=["8"], published=False), 100)
    assert "†" not in none
    assert "14490" not in none


def test_published_figures_have_the_digits_of_the_paper_and_a_warning():
    plan = {**PLAN, "G-QA": (40, 10), "G-PS": (20, 10), "G-CA": (30, 24)}
    text = agrieval_text([result(plan), result(plan, setting="cot")], models=["GPT-4o-mini", "DeepSeek-V3"])
    parts = blocks_of(text)
    rouge = parts["AgriEval, Table 13. Open questions, ROUGE-L by task"]
    assert re.search(r"GPT-4o-mini +17\.19 +35\.22 +37\.76 +21\.22", rouge)
    assert re.search(r"items \(implied\) +1700\S +325 +142\S +2167", rouge)
    formats = parts["AgriEval, Table 14. Accuracy by question format"]
    assert re.search(r"cot\S* +41\.63↓ +41\.63↑ +54\.52↑ +43\.37↓", formats)
    assert f"arXiv {paper('agrieval').arxiv}" in " ".join(text.split())
    assert "reading of answers are not those of these runs" in " ".join(text.split())
    assert "three experts, expert set: 70.62 % (n 1,500)" in text


def test_doubts_are_marked_where_they_belong_and_told_once():
    text = agrieval_text(
        [result(), result(setting="cot"), result(setting="few-shot")], models=["GPT-4o", "GPT-4o-mini"]
    )
    for told in ("Relabelled: the printed header begins", "draws lots", "52.64 is above", "fit 61 (M-R)"):
        assert " ".join(text.split()).count(told) == 1, told
    number = re.search(r"^(\S+) † The arrow points down", text, re.MULTILINE)
    assert number
    assert f"52.64↓{number[1]}" in text
    sizes = re.search(r"^(\S+) † The values fit 61", text, re.MULTILINE)
    assert sizes
    assert re.search(rf"items \(implied\) +6077 +61{sizes[1]} +880 +44{sizes[1]} ", text)


def test_changes_stand_with_their_intervals():
    text = agrieval_text([result(), result(setting="cot", shift=(2,))], published=False)
    table = blocks_of(text)["AgriEval, Table 14. Accuracy by question format"]
    change = 100 * 24 / 252
    assert f"Δ +{change:.1f}" in table
    assert re.search(r"\+\d+\.\d\.\.\+\d+\.\d", table)
    by_task = blocks_of(text)["AgriEval, Table 11. Chain of thought, accuracy by task: Inference"]
    assert by_task.count("Δ") == 1


def test_what_was_not_run_is_said():
    text = " ".join(agrieval_text([result()]).split())
    assert "Without rows: Table 4 (not run: cot, few-shot); 9, 10 (not run: few-shot); 11, 12 (not run: cot); " in text
    assert "13 (no open questions)." in text
    assert agrieval_text([]).strip() == "No scored items: nothing to lay out."
    assert "standard deviation" not in text


def test_mean_and_deviation_over_epochs():
    text = agrieval_text([result(shift=(0, 1, 2))], published=False)
    block = blocks_of(text)["AgriEval. Mean and standard deviation over epochs"]
    assert re.search(r"model-a +3 +45\.2 ± 4\.76 +—", block)
    assert "n 252" in block


def test_results_of_one_model_and_setting_are_told_apart():
    results = [result(setting="5-shot", shift=(0, 1), apart=f"shots={shots}") for shots in (3, 5)]
    text = agrieval_text(results, models=[])
    table, spread = text.split("Mean and standard deviation")
    for part in (table, spread):
        assert "shots=3" in part
        assert "shots=5" in part


def test_few_items_have_no_interval():
    text = rendered(agrieval_parts([result({"I-G": (8, 2), "M-R": (4, 2)})], numbers=["7"], published=False), 100)
    assert re.search(r"model-a +50\.0 +25\.0 +33\.3\n +21", text) is None
    assert re.search(r"model-a +50\.0 +25\.0 +33\.3", text)


def test_names_of_models_cannot_steer_a_terminal():
    text = agrieval_text([result(model="a\x1b[31mb"), result(model="a\x1b[31mb", setting="c\x07ot")])
    assert "\x1b" not in text
    assert "\x07" not in text


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("line", "circle", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_the_page_has_the_same_tables_whole_and_escaped():
    results = [result(model="<script>x</script>", shift=(0, 1)), result(model="<script>x</script>", setting="cot")]
    section = str(agrieval_section(results))
    tags = _Tags()
    tags.feed(section)
    assert tags.open == []
    assert "script" not in tags.seen
    assert tags.seen.count("section") > 5
    assert section.count("Qwen-Turbo") == 3  # Table 7 in two parts, and Table 8
    assert "Mean and standard deviation over epochs" in section
    assert "draws lots" in section
    assert str(agrieval_section([])).count("nothing to lay out") == 1


def test_the_page_draws_an_interval_for_each_value_of_a_run():
    section = str(agrieval_section([result()], published=False))
    drawn = re.findall(r'aria-label="([\d.]+) %, 95 % interval', section)
    values = [f"{100 * right / n:.1f}" for n, right in (PLAN["I-N"], PLAN["M-P"], PLAN["I-G"])]
    assert set(values) <= set(drawn)
    assert len(drawn) == 13 + 7 + 4 + 4


@pytest.mark.parametrize("column", ["task", "domain"])
def test_parts_that_are_left_out_are_told_on_the_page(column):
    section = str(agrieval_section([without(result(), **{column: ""})]))
    assert f"The files do not say the {column} of any item" in section
