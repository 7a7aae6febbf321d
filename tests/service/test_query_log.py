from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx


def test_the_report_over_http(running_service: Callable[..., Any]) -> None:
    service = running_service()
    base = f"{service.url}/v1/collections/scenes"
    found = httpx.post(f"{base}/search", json={"query": "A red circle", "limit": 5}).json()
    click = {"search_id": found["search_id"], "item": found["answers"][2]["id"], "position": 3, "kind": "more_like"}
    assert httpx.post(f"{base}/clicks", json=click, headers=service.headers).status_code == 201
    report = httpx.get(f"{base}/query-log", params={"days": 3}, headers=service.headers).json()
    assert (report["log"], report["searches"], report["clicks"], len(report["per_day"])) == (True, 1, 1, 3)
    assert (report["top"][0]["query"], report["top"][0]["clicked_share"]) == ("a red circle", 1.0)
    assert [line["clicked"] for line in report["positions"]] == [0, 0, 1, 0, 0]
    for days in ("0", "-1", "x", "99999999"):
        assert httpx.get(f"{base}/query-log?days={days}", headers=service.headers).status_code == 422
