"""Lesions on leaves: area, count, grade."""
