"""Export and import of benchmarks: native folder with its card, Hugging Face layout, GTA-shaped JSON, Croissant."""
