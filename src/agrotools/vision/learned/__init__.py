"""Large open models, loaded only from local weights: no network access, no code from model folders."""
