"""Scoring of records: score rows, and metrics with intervals from them. It needs no network and no optional extra."""
