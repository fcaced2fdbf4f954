"""Export of benchmarks: native folder with its card, Hugging Face layout, Croissant. Import of GTA-shaped JSON."""
