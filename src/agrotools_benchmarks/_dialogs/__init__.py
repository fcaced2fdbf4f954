"""Readers and scorers shared by GTA, GTA-2, ThinkGeo and Agent-X: files, dialogues, faults, tool calls."""
