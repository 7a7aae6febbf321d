"""Ids of items in addresses."""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor

ITEM_ID = "{item_id:item}"
"""The step of an address that names an item."""

_PARTS = ("thumbnail", "original", "neighbours")


class ItemIdConvertor(Convertor[str]):
    """Takes ids as they are, slashes included, up to the part of the item that an address may end with."""

    regex = rf"(?:(?!/(?:{'|'.join(_PARTS)})$).)+"

    def convert(self, value: str) -> str:
        """Return the id in an address."""
        return value

    def to_string(self, value: str) -> str:
        """Return the address of an id."""
        return value


register_url_convertor("item", ItemIdConvertor())
