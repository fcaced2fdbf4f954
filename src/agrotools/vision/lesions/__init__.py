"""Leaves and the lesions on them."""
