"""Changing a collection: adding, removing, encoding, other retrievers, maintenance."""
