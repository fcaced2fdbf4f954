"""Lookup in the knowledge base."""
