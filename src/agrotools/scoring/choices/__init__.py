"""Reading the options that a reply to a multiple-choice or true-or-false question chooses (Chinese and English)."""

from agrotools.scoring.choices.reader import ChoiceReading, read_choices

__all__ = ["ChoiceReading", "read_choices"]
