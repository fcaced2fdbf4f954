"""What the loaders of GTA, ThinkGeo and Agent-X share: where files lie, what is wrong with them, dialogs, files."""
