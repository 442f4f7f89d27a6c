"""Path diagrams of measurement models: what is drawn, where it goes, how it looks. No statistics in here."""
