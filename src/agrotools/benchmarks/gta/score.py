"""GTA's tools and rules of scoring (arXiv 2407.08713), and the metrics of its paper for a run.

Ported from the behaviour of its scorer (github.com/open-compass/GTA, Apache-2.0, as of 2026: a category without a gold
call has F1 0, where earlier versions divided by zero).
"""

from functools import partial

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
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import Compared

RULES = Rules(
    name="gta",
    categories={f"{category[0]}_f1": tools for category, tools in CATEGORIES.items()},
    image_tools=IMAGE_TOOLS,
    image_metric="ans_acc_imggen",
    recall=lambda hits, gold: hits / gold if gold else 0.0,
    guards_answers=True,
)
SCORING = scoring_by(RULES, PAPER_RUN)


def _compare(inputs: PredictionInput) -> Compared:
    return compare_dialogues(inputs, RULES)


FORMAT = PredictionFormat(
    "GTA",
    "gta",
    _compare,
    differences_of(RULES, ans_acc_imggen=IMAGES, c_f1=CALLS_ONCE),
    refused={"judgements": ("GTA has no judge: --judgements is for thinkgeo and agentx", "leave it out")},
    write=partial(prediction_content, PAPER_RUN),
)
