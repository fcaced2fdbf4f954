"""Report of runs on GTA: the tables of its paper."""

from collections.abc import Mapping
from functools import partial

from agrotools.benchmarks._dialogs.report import STEPS, Layout, published_tables
from agrotools.core import Mode
from agrotools.plugin import Reporting

_END = {"p_f1": "P", "o_f1": "O", "l_f1": "L", "c_f1": "C", "ans_acc": "Ans", "ans_acc_imggen": "Ans+I"}
LAYOUTS: Mapping[Mode, Layout] = {
    "step-by-step": Layout("GTA, step by step", STEPS, "4"),
    "end-to-end": Layout("GTA, end to end", _END, "4"),
}
REPORTING = Reporting(tables=partial(published_tables, "gta", LAYOUTS))
