"""Tools that name what they see, and tell what is known of it."""
