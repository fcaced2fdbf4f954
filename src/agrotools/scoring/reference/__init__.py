"""Ports of published scorers that agree with them to the digit, faults included; each says what it does differently
from what one would expect. Corrected forms stand elsewhere, and reports show both."""
