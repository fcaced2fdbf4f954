"""Agent-X (Ashraf et al. 2025, arXiv 2505.24876): 828 questions on images and videos, with 14 tools."""
