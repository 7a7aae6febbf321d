"""From files and texts to rows: reading, encoding, adding and encoding again."""
