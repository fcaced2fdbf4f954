"""Help of models in building: paraphrased questions, recorded reference traces, screening by baselines."""
