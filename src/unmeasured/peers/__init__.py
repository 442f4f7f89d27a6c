"""Other methods for the same question, with the interface of LGES, so that tables set all of them on the same data."""
