"""Fruits: found by colour, measured by outline and depth."""
