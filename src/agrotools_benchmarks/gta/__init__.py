"""GTA (Wang et al. 2024, arXiv 2407.08713): 229 human-written questions on 252 images, with 14 tools."""
