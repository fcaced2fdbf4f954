"""Image algorithms and file reading that several tools share, and our small models."""
