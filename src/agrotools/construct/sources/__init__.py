"""Sources: one adapter per data set, each turning a folder of the user's into a benchmark."""
