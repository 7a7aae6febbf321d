"""What a collection keeps on disk: its folder, its tables, its retrievers and its items."""
