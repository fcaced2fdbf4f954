"""Search in the knowledge base, and the checking of its files."""
