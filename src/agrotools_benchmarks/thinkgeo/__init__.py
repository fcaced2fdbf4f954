"""ThinkGeo (Shabbir et al. 2025, arXiv 2505.23752): 486 questions on satellite and aerial images, with 14 tools."""
