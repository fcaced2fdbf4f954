"""Tools that part a picture into areas."""
