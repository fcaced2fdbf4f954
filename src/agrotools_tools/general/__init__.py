"""General tools for pictures of any kind, used by the published toolsets."""
