"""The form of single plants."""
