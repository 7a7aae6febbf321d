"""The version, on the ground floor: rooms below the package's own names write it into their files."""

__version__ = "0.2.0.dev0"
