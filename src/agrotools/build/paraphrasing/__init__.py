"""Whether another wording of a question asks the same: rules, so that nobody has to trust whoever proposed it."""

from agrotools.build.paraphrasing.anchors import fixed_parts
from agrotools.build.paraphrasing.check import REASONS, Refusal, original_of, refusal, reworded

__all__ = ["REASONS", "Refusal", "fixed_parts", "original_of", "refusal", "reworded"]
