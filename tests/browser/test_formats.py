"""What browsers cannot show by themselves: moments of videos, files of phones, and kinds that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import TOKEN
from tests.doubles.picture_samples import picture, write_picture, write_video


def test_videos_open_at_their_moment_and_photos_as_pictures(visit: Callable, own_site: Any, tmp_path: Path) -> None:
    write_video(tmp_path / "clip.webm", [picture(1), picture(2)], seconds=3)
    write_picture(tmp_path / "photo.heic", picture(5))
    picture(2).save(tmp_path / "query.png")
    (own_site.pictures / "new.jxl").write_bytes(b"\xff\x0a")
    with httpx.Client(base_url=own_site.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        for name in ("clip.webm", "photo.heic"):
            sent = client.post(
                "/v1/collections/scenes/items/picture", files={"picture": (name, (tmp_path / name).read_bytes())}
            )
            assert sent.status_code == 201
        photo = sent.json()["id"]
        client.post("/v1/collections/scenes/jobs", json={"kind": "index"})
    page = visit("/", at=own_site).page
    page.locator('input[type="file"]').set_input_files(tmp_path / "query.png")
    tile = page.locator(".tile").first
    expect(tile.locator(".moment")).to_have_text("▶ 0:03")
    expect(tile.get_by_role("link")).to_have_accessible_name(re.compile("video at 0:03"))
    tile.get_by_role("link").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".detail-title p")).to_contain_text("at 0:03")
    video = dialog.locator("video")
    expect(video).to_have_js_property("error", None)
    # A function: an expression is evaluated anew with every look, which the policy of the page forbids.
    page.wait_for_function("() => document.querySelector('video')?.readyState >= 2")
    assert 2.9 < video.evaluate("video => video.currentTime") < 4
    # The file of a phone is shown as a picture, and can be saved as it is.
    page.goto(f"{own_site.url}/item/{photo}")
    shown = page.get_by_role("dialog").locator(".stage img")
    expect(shown).to_have_attribute("src", re.compile("/rendering$"))
    width, height = picture(5).size
    expect(shown).to_have_js_property("naturalWidth", width)
    expect(shown).to_have_js_property("naturalHeight", height)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Original").click()
    assert saved.value.suggested_filename.endswith(".heic")
    page.goto(f"{own_site.url}/jobs")
    note = "1 file of kinds that cannot be read: JXL; convert them to JPEG or PNG"
    expect(page.locator(".job.done").first).to_contain_text(note)
