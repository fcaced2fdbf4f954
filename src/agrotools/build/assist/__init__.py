"""Models and baselines that help in building: paraphrases, reference traces, screening."""
