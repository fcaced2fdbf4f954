"""Height and cover of a canopy from rasters of heights."""
