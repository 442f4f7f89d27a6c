"""Data from files: tables in CSV, SPSS, Stata, Excel and Parquet, matrices, text pasted from an article."""
