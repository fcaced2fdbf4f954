"""GTA's tools and rules of scoring (arXiv 2407.08713), and the metrics of its paper for a run.

Ported from the behaviour of its scorer (github.com/open-compass/GTA, Apache-2.0, as of 2026: a category without a gold
call has F1 0, where earlier versions divided by zero).
"""

from agrotools.benchmarks._dialogs.published_run import scoring_by
from agrotools.benchmarks._dialogs.published_scorer import Rules

RULES = Rules(
    name="gta",
    categories={
        "p_f1": ("OCR", "ImageDescription", "RegionAttributeDescription", "TextToBbox"),
        "o_f1": ("DrawBox", "AddText", "GoogleSearch"),
        "l_f1": ("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"),
        "c_f1": ("TextToImage", "ImageStylization"),
    },
    image_tools=("DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"),
    image_metric="ans_acc_imggen",
    recall=lambda hits, gold: hits / gold if gold else 0.0,
    guards_answers=True,
)
SCORING = scoring_by(RULES)
