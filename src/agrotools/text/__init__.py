"""Text and numbers: normalisation, units, quantities, expressions, the answer form and submitted answers."""
