"""What keeps a collection whole: checks, repairs, backups."""
