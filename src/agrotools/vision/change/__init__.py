"""What differs between two pictures of one place."""
