"""A run of AgriEval in the tables of its paper.

The interface, all of it:

* Make a :class:`SettingResult` for each model and setting: a model's label, the setting, and :class:`ItemColumns` with
  an entry for each scored item and epoch. Items keep their ids between settings (also where the options were put in
  another order): by them a setting is compared with the same model's zero-shot.
  :func:`items_of_runs` makes them of run folders.
* ``print_agrieval(results)`` prints everything; :func:`agrieval_parts` gives the same as rich renderables,
  ``agrieval_text`` as plain text, and :func:`agrotools.report.html.agrieval.agrieval_section` as part of an HTML page.
* :func:`agrieval_tables` gives the tables as data, :func:`epoch_spreads` mean and deviation over epochs.

Published figures stand beside a run with the number of items they rest on and with their doubts. They are not runs of
ours: items, prompts and the reading of answers differ.
"""

from agrotools.report.agrieval.layout import COMPLETE, OWN_TABLES, PAPER_TABLES, Column, PaperTable, paper_table
from agrotools.report.agrieval.of_runs import RunItems, items_of_runs
from agrotools.report.agrieval.printing import agrieval_parts, agrieval_text, print_agrieval
from agrotools.report.agrieval.results import ItemColumns, SettingResult, setting_of
from agrotools.report.agrieval.tables import (
    Cell,
    EpochSpread,
    LaidOutTable,
    PublishedLine,
    RunLine,
    agrieval_tables,
    epoch_spreads,
)

__all__ = [
    "COMPLETE",
    "OWN_TABLES",
    "PAPER_TABLES",
    "Cell",
    "Column",
    "EpochSpread",
    "ItemColumns",
    "LaidOutTable",
    "PaperTable",
    "PublishedLine",
    "RunItems",
    "RunLine",
    "SettingResult",
    "agrieval_parts",
    "agrieval_tables",
    "agrieval_text",
    "epoch_spreads",
    "items_of_runs",
    "paper_table",
    "print_agrieval",
    "setting_of",
]
