"""The web page: one HTML document, its styles and its modules."""
