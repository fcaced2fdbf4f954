"""Marks drawn on photographs, and the regions inside them."""
