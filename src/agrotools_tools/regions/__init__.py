"""Description of a region in numbers and in a sentence."""
