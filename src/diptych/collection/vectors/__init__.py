"""What finds the nearest points of a query: faiss beside SQLite, pgvector in PostgreSQL."""
