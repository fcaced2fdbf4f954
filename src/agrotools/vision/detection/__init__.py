"""Objects found by a trained net: boxes with scores, in pictures of any size."""
