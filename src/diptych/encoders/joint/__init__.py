"""Local models that know pictures and words together: CLIP, SigLIP and the like."""
