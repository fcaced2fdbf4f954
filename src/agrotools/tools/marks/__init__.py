"""Marks that people draw on photographs, and what they enclose."""
