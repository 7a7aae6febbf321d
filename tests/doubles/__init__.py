"""Doubles for tests and campaigns: a retriever that costs nothing, pictures of every kind, simulated visitors."""

from tests.doubles.toy_retriever import WIDTH, ToyRetriever, item_state, wrong_points

__all__ = ["WIDTH", "ToyRetriever", "item_state", "wrong_points"]
