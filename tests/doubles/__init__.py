"""Doubles for tests and campaigns: a retriever that costs nothing, pictures of every kind, simulated visitors."""

from tests.doubles.toy_retriever import WIDTH, Killed, ToyRetriever, interrupt_change, item_state, wrong_points

__all__ = ["WIDTH", "Killed", "ToyRetriever", "interrupt_change", "item_state", "wrong_points"]
