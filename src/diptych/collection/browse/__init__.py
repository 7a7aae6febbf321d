"""Looking through a collection without a query: filters, facets, suggestions, thumbnails, export."""
