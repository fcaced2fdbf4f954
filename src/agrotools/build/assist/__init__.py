"""Model-assisted steps of a build: paraphrases, reference traces, screening."""
