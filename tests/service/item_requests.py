"""Requests for items that several tests make, and what is said of those that are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import httpx
from PIL import Image

Start = Callable[..., Any]
ITEMS = "/v1/collections/scenes/items"
PICTURES = f"{ITEMS}/picture"


def picture(mode: str = "RGB", size: tuple[int, int] = (40, 30), kind: str = "PNG", **options: Any) -> bytes:
    content = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(content, kind, **options)
    return content.getvalue()


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].removeprefix("/problems/")


def first_item(client: httpx.Client) -> dict[str, Any]:
    item: dict[str, Any] = client.get(ITEMS, params={"limit": 1, "order": "asc"}).json()["items"][0]
    return item
