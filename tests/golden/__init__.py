"""Recorded answers, outputs and documents: what Diptych does stays as it is unless a commit says why it changes."""
