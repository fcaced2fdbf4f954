"""Reader of the chosen options in replies to multiple-choice and true-or-false questions (Chinese and English)."""

from agrotools.scoring.choices.reader import ChoiceReading, read_choices

__all__ = ["ChoiceReading", "read_choices"]
