"""Large open models, loaded from local weights only, without network access or third-party code."""
