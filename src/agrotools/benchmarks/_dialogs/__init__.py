"""Readers and scorers that GTA, GTA-2, ThinkGeo and Agent-X share: files, dialogues, faults, tool calls."""
