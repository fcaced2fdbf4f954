"""Tools that identify weeds, pests and diseases, and look up knowledge about them."""
