"""The answer: what a search found, as people read it and as other programs take it."""
