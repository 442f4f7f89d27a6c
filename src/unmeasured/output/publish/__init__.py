"""What a run gives to a publication: tables, an R script, a paragraph on methods, references."""
