"""Scoring rules of GTA (arXiv 2407.08713), and the metrics and tables of its paper for a run.

Ported from the behaviour of its scorer (github.com/open-compass/GTA, Apache-2.0, as of 2026: a category without a gold
call has F1 0, while earlier versions divided by zero).
"""

from collections.abc import Mapping
from functools import partial

from agrotools.benchmarks._dialogs.plugin_parts import STEPS, TableLayout
from agrotools.benchmarks._dialogs.published_scorer import Rules
from agrotools.benchmarks._dialogs.scores import (
    CALLS_ONCE,
    IMAGES,
    compare_dialogues,
    differences_of,
    prediction_content,
    scoring_by,
)
from agrotools.benchmarks.gta.plugin import CATEGORIES, IMAGE_TOOLS, PAPER_RUN
from agrotools.core import Mode
from agrotools.plugin import PredictionFormat, Reporting, deferred

RULES = Rules(
    name="gta",
    categories={f"{category[0]}_f1": tools for category, tools in CATEGORIES.items()},
    image_tools=IMAGE_TOOLS,
    image_metric="ans_acc_imggen",
    recall=lambda hits, gold: hits / gold if gold else 0.0,
    guards_answers=True,
)
SCORING = scoring_by(RULES, PAPER_RUN)


FORMAT = PredictionFormat(
    "GTA",
    "gta",
    partial(compare_dialogues, rules=RULES),
    differences_of(RULES, ans_acc_imggen=IMAGES, c_f1=CALLS_ONCE),
    refused={"judgements": ("GTA has no judge: --judgements is for thinkgeo and agentx", "leave it out")},
    write=partial(prediction_content, PAPER_RUN),
)
LAYOUTS: Mapping[Mode, TableLayout] = {
    "step-by-step": TableLayout("GTA, step by step", STEPS, "4"),
    "end-to-end": TableLayout(
        "GTA, end to end",
        {"p_f1": "P", "o_f1": "O", "l_f1": "L", "c_f1": "C", "ans_acc": "Ans", "ans_acc_imggen": "Ans+I"},
        "4",
    ),
}
REPORTING = Reporting(tables=partial(deferred("agrotools.benchmarks._dialogs.report:published_tables"), "gta", LAYOUTS))
