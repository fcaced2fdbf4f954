"""Report of runs on ThinkGeo: the tables of its paper, A1 for those on radar images."""

from collections.abc import Mapping
from functools import partial

from agrotools.benchmarks._dialogs.report import STEPS, Layout, published_tables
from agrotools.core import Mode
from agrotools.plugin import Reporting

_END = {"p_f1": "P", "o_f1": "O", "l_f1": "L", "ans_acc": "Ans", "ans_i": "Ans_I"}
LAYOUTS: Mapping[Mode, Layout] = {
    "step-by-step": Layout("ThinkGeo, step by step", STEPS, "3"),
    "end-to-end": Layout("ThinkGeo, end to end", _END, "3"),
}
REPORTING = Reporting(tables=partial(published_tables, "thinkgeo", LAYOUTS, split_tables={"sar": "A1"}))
