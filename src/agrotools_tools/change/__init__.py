"""Tools that compare pictures of two dates."""
