"""What all commands share of the terminal: output, progress, thumbnails and paths."""
