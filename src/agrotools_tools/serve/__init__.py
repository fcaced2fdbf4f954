"""Local services over what the other packages make. Imported only by the commands that start them."""
