"""Form and size of single plants."""
