"""Prediction files that GTA's evaluation writes."""

from agrotools.benchmarks._dialogs.predictions import CALLS_ONCE, IMAGES, compare_dialogues, differences_of
from agrotools.benchmarks.gta.score import RULES
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.predictions import Compared


def _compare(given: PredictionInput) -> Compared:
    return compare_dialogues(given, RULES)


FORMAT = PredictionFormat(
    "GTA",
    "gta",
    _compare,
    differences_of(RULES, ans_acc_imggen=IMAGES, c_f1=CALLS_ONCE),
    refused={"judgements": ("GTA has no judge: --judgements is for thinkgeo and agentx", "leave it out")},
)
