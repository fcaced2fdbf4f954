"""Large open models: loaded from weights that lie on this machine, never from the network, never with foreign code."""
