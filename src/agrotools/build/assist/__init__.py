"""Model-assisted steps of a build: paraphrases, screening."""
