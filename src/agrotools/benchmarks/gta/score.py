"""Scoring rules of GTA (arXiv 2407.08713), and the metrics and tables of its paper for a run.

Ported from the behaviour of its scorer (github.com/open-compass/GTA, Apache-2.0, as of 2026: a category without a gold
call has F1 0, while earlier versions divided by zero).
"""

from functools import partial

from agrotools.benchmarks._dialogs.plugin_parts import table_layouts
from agrotools.benchmarks._dialogs.published_scorer import Rules
from agrotools.benchmarks._dialogs.scores import compare_dialogues, prediction_content, scoring_by
from agrotools.benchmarks.facts import differences_of
from agrotools.benchmarks.gta.plugin import FACTS, PAPER_RUN
from agrotools.plugin import PredictionFormat, Reporting, deferred

RULES = Rules(
    name="gta",
    categories={f"{category[0]}_f1": tools for category, tools in FACTS["tool_categories"].items()},
    image_tools=FACTS["image_tools"],
    image_metric="ans_acc_imggen",
    recall=lambda hits, gold: hits / gold if gold else 0.0,
    guards_answers=True,
)
SCORING = scoring_by(RULES, PAPER_RUN)


FORMAT = PredictionFormat(
    "GTA",
    "gta",
    partial(compare_dialogues, rules=RULES),
    differences_of(FACTS, "gta"),
    refused={"judgements": ("GTA has no judge: --judgements is for thinkgeo and agentx", "leave it out")},
    write=partial(prediction_content, PAPER_RUN),
)
REPORTING = Reporting(
    tables=partial(deferred("agrotools.benchmarks._dialogs.report:published_tables"), "gta", table_layouts(FACTS))
)
