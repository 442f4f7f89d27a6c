"""What the user knows before the search: statements, what they allow, and whether they can all hold."""
