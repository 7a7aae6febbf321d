"""Why an answer is there: one idea of explaining per module."""
