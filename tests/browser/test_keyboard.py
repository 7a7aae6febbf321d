from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

# The ring may be drawn by the focused element, a part of it, or the box around it.
FOCUS_IS_DRAWN = """() => {
  const focused = document.activeElement;
  const near = [focused.parentElement, focused.nextElementSibling, focused.closest('.ask-box')];
  return [focused, ...focused.querySelectorAll('*'), ...near].filter(Boolean).some((element) => {
    const style = getComputedStyle(element);
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    return outlined || style.boxShadow.includes('3px');
  });
}"""


def test_a_journey_without_a_mouse(visit: Callable) -> None:
    page = visit().page
    page.locator(".tile").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search")
    expect(box).to_be_focused()
    page.keyboard.type("a rocket")
    expect(page).to_have_url(re.compile(r"q=a\+rocket$"))
    page.keyboard.press("Enter")
    expect(page.locator(".tile .score").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tile-link").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(box).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tile-link").nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    below = page.evaluate("document.activeElement.getBoundingClientRect().left")
    assert abs(below - page.locator(".tile-link").nth(1).bounding_box()["x"]) < 2
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").locator(".facts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".tile-link").first).to_be_focused()
    page.keyboard.press("m")
    expect(page.locator(".chip.like")).to_have_count(1)
    # New answers take the place of those before, and of the focus that was on them.
    expect(page.locator(".tile-link").first).to_be_focused()
    keys = page.get_by_role("button", name="Keyboard shortcuts")
    keys.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Close").press("Enter")
    expect(keys).to_be_focused()


def test_the_focus_is_always_seen(visit: Callable) -> None:
    page = visit("/?q=a+rocket", height=600).page
    page.locator(".tile .score").first.wait_for()
    for _ in range(25):
        page.keyboard.press("Tab")
        seen = page.evaluate(FOCUS_IS_DRAWN)
        assert seen, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
