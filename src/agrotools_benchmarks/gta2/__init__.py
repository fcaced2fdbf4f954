"""GTA-2 (Wang et al. 2026, arXiv 2604.15715): GTA-Workflow, tasks graded by trees of sub-tasks, with 37 tools."""
