"""Words to feature vectors."""
