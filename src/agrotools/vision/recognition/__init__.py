"""Naming what a picture shows: shipped nets, packs of a user's own, and how far an answer can be trusted."""
