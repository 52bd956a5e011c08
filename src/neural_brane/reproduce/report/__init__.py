"""The report: figures, tables and the page that holds them."""
