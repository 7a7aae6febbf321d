"""Joint models by name: a catalogue of those worth having, and fetching them from the Hugging Face hub."""
