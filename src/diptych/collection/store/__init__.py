"""The tables of a collection, in SQLite or PostgreSQL: the truth that every index can be made of again."""
