"""Model-assisted steps of a build: paraphrases, proposed questions, screening."""
