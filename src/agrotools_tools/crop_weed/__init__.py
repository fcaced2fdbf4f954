"""Area of crop, weeds and soil."""
