"""Collections in object storage: the bucket, the lease of its one writer, and the copy that a machine searches."""
