"""Readers and scorers shared by GTA, ThinkGeo and Agent-X: files, dialogues, faults, tool calls."""
