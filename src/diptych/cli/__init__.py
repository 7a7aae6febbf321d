"""The command line: the same things from a terminal."""

from diptych.cli.app import app, main

__all__ = ["app", "main"]
