"""General tools: what an assistant needs for pictures of any kind. The published toolsets are made of them."""
