"""Prediction files in the forms that GTA, ThinkGeo and Agent-X write, read and checked."""
