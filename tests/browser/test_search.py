from __future__ import annotations

import re
import zipfile
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

TILE = ".tiles .tile"
BOXES = """[...document.querySelectorAll('.tiles .tile')].map((tile) => {
  const box = tile.getBoundingClientRect();
  return [box.x, box.y + scrollY, box.width, box.height];
})"""


def search(page: Page, words: str) -> None:
    page.get_by_role("combobox", name="Search").fill(words)
    expect(page.locator(".summary")).to_have_text(re.compile("searched in"))


def test_typing_brings_pictures_with_probabilities(visit: Callable) -> None:
    page = visit().page
    expect(page.locator(TILE).first).to_be_visible()
    search(page, "a red car")
    first = page.locator(TILE).first
    expect(first.locator(".score-number")).to_have_text(re.compile(r"^(<1|\d+)%$"))
    expect(first.locator(".tile-link")).to_have_attribute("aria-label", re.compile(r"% likely$"))
    expect(page).to_have_url(re.compile(r"\?q=a\+red\+car$"))
    expect(page.locator("#live")).to_have_text(re.compile("likely|No good match"))
    marks = page.evaluate("performance.getEntriesByType('mark').map((mark) => mark.name)")
    assert {"diptych:asked", "diptych:shown"} <= set(marks)


def test_a_shared_address_and_the_back_button_bring_the_search_back(visit: Callable) -> None:
    page = visit("/?q=a+house&in=texts").page
    box = page.get_by_role("combobox", name="Search")
    expect(box).to_have_value("a house")
    expect(page.get_by_role("radio", name="Texts")).to_be_checked()
    expect(page.locator(".as-texts .tile").first).to_be_visible()
    page.get_by_role("radio", name="Pictures").check()
    expect(page).to_have_url(re.compile(r"\?q=a\+house$"))
    page.go_back()
    expect(page.get_by_role("radio", name="Texts")).to_be_checked()
    page.go_forward()
    expect(page.get_by_role("radio", name="Pictures")).to_be_checked()


def test_typing_makes_one_entry_of_the_history(visit: Callable) -> None:
    page = visit().page
    # Words that stand for more than a second are an entry of their own, and a busy machine may take that long.
    page.evaluate(
        "() => { const timer = setTimeout; window.setTimeout = (work, ms) => (ms > 1000 ? 0 : timer(work, ms)); }"
    )
    before = page.evaluate("history.length")
    for words in ("a", "a h", "a house"):
        page.get_by_role("combobox", name="Search").fill(words)
        expect(page).to_have_url(re.compile(rf"\?q={words.replace(' ', chr(92) + '+')}$"))
    assert page.evaluate("history.length") == before + 1


def test_stale_answers_are_given_up(visit: Callable) -> None:
    """The answer to an older query comes last and must not replace that to the newer one."""
    page = visit().page
    held = []

    def hold_back_the_first(route):
        if "slow words" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/search", hold_back_the_first)
    box = page.get_by_role("combobox", name="Search")
    box.fill("slow words")
    expect(page).to_have_url(re.compile("slow"))
    search(page, "a fish")
    names = page.locator(f"{TILE} .tile-title").all_text_contents()
    for route in held:
        route.abort()
    expect(box).to_have_value("a fish")
    assert page.locator(f"{TILE} .tile-title").all_text_contents() == names


def test_suggestions_follow_the_combobox_pattern(visit: Callable) -> None:
    page = visit().page
    box = page.get_by_role("combobox", name="Search")
    box.fill("hou")
    options = page.get_by_role("option")
    expect(options.first).to_contain_text("hou")
    expect(box).to_have_attribute("aria-expanded", "true")
    box.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", "suggestion-0")
    expect(options.first).to_have_attribute("aria-selected", "true")
    text = options.first.locator("span").inner_text()
    box.press("Enter")
    expect(box).to_have_value(text)
    expect(box).to_have_attribute("aria-expanded", "false")
    box.fill("car - hou")
    expect(options.first).to_contain_text("hou")
    options.first.click()
    expect(box).to_have_value(re.compile("^car - hou"))
    for key in ("Enter", "Escape"):
        box.fill("hou")
        expect(options.first).to_be_visible()
        # They stand between the box and what it found, and cover neither.
        below = page.locator("#suggestions").bounding_box()
        assert below["y"] >= (around := page.locator(".ask-box").bounding_box())["y"] + around["height"]
        assert below["y"] + below["height"] <= page.locator(".toolbar").bounding_box()["y"]
        box.press(key)
        expect(page.locator("#suggestions")).to_be_hidden()
        expect(box).to_have_value("hou")


def test_the_line_parts_good_answers_from_others(visit: Callable) -> None:
    page = visit("/?q=a+fish").page
    page.locator(TILE).first.wait_for()
    while page.locator(".line").count() == 0 and page.locator(".more").is_visible():
        shown = page.locator(TILE).count()
        page.locator(".more").click()
        page.wait_for_function(f"() => document.querySelectorAll('{TILE}').length > {shown}")
    expect(page.locator(".line")).to_contain_text("Below this line results are much less likely")
    parts = page.evaluate(
        "[...document.querySelector('.tiles').children].map((e) => e.className.includes('line') ? '|' : "
        "e.classList.contains('below') ? 'u' : 'l').join('')"
    )
    assert re.fullmatch(r"l+\|u+", parts)
    above = page.locator(".tile:not(.below)").last.bounding_box()
    line = page.locator(".line").bounding_box()
    below = page.locator(".tile.below").first.bounding_box()
    assert above["y"] + above["height"] <= line["y"] < line["y"] + line["height"] <= below["y"] + 1


def test_no_good_match_says_what_to_do(visit: Callable) -> None:
    page = visit("/?q=two+fish+deep+under+water&f=label%3Dkite").page
    notice = page.locator(".above .notice")
    expect(notice.get_by_role("heading")).to_have_text("No good match")
    expect(page.locator(f"{TILE}.below").first).to_be_visible()
    notice.get_by_role("button", name="Also match single words").click()
    expect(page.get_by_role("combobox", name="Match by")).to_have_value("both")
    expect(page).to_have_url(re.compile("words=1"))


def test_misspelt_and_unwanted_words_are_told_and_can_be_changed(visit: Callable) -> None:
    page = visit("/?q=swiming+pool").page
    expect(page.locator(".above .note")).to_contain_text("Searched for swimming pool")
    page.get_by_role("link", name='"swiming pool"').click()
    expect(page.get_by_role("combobox", name="Search")).to_have_value('"swiming pool"')
    search(page, "a bech")
    page.get_by_role("link", name="a beach").click()
    expect(page.get_by_role("combobox", name="Search")).to_have_value("a beach")
    search(page, "a house, no people")
    expect(page.get_by_role("list", name="Not wanted")).to_contain_text("− people")
    page.get_by_role("button", name="Search with people too").click()
    expect(page.get_by_role("combobox", name="Search")).to_have_value("a house")


def test_answers_and_listings_are_sorted(visit: Callable, site: Site) -> None:
    page = visit("/?q=a+red+ball").page
    sort = page.get_by_role("combobox", name="Sort")
    expect(sort).to_have_value("relevance")
    expect(page.locator(f"{TILE}.below").first).to_be_attached()
    sort.select_option("name")
    expect(page).to_have_url(re.compile("sort=name"))
    expect(page.locator(f"{TILE}.below")).to_have_count(0)
    page = visit().page
    sort = page.get_by_role("combobox", name="Sort")
    for order in ("added", "name"):
        asked = page.context.request.get(f"{site.url}/v1/collections/scenes/items?limit=1&sort={order}").json()
        expect(sort).to_have_value(order)
        expect(page.locator(TILE).first).to_have_attribute("data-id", asked["items"][0]["id"])
        sort.select_option("name")


def test_scrolling_reaches_every_item_once_and_in_order(visit: Callable) -> None:
    page = visit().page
    page.locator(TILE).first.wait_for()
    total = int(page.locator(".summary").inner_text().split()[0])
    page.wait_for_function(
        f"""() => {{
          window.scrollTo(0, document.body.scrollHeight);
          return document.querySelectorAll('{TILE}').length === {total};
        }}"""
    )
    expect(page.locator(".end")).to_have_text(f"That is all: {total} results.")
    expect(page.locator(".more")).to_be_hidden()
    ids = page.eval_on_selector_all(TILE, "tiles => tiles.map(tile => tile.dataset.id)")
    assert len(set(ids)) == total


def test_more_by_keyboard_moves_the_focus_to_what_came(visit: Callable) -> None:
    page = visit(height=500).page
    page.locator(TILE).first.wait_for()
    before = page.locator(TILE).count()
    page.locator(".more").focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => document.querySelectorAll('{TILE}').length > {before}")
    focused = page.evaluate("document.activeElement.closest('.tile') !== null")
    assert focused


def test_tiles_do_not_overlap_nor_move_when_pictures_arrive(visit: Callable) -> None:
    page = visit("/?q=a+ball").page
    page.locator(TILE).first.wait_for()
    before = page.evaluate(BOXES)
    page.evaluate("[...document.images].forEach((image) => { image.loading = 'eager'; })")
    page.wait_for_function("() => [...document.images].every((image) => image.complete)")
    count = len(before)
    boxes = page.evaluate(BOXES)[:count]
    assert boxes == before
    for place, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[place + 1 :]:
            assert x + width <= left + 0.5 or left + wide <= x + 0.5 or y + height <= top + 0.5 or top + high <= y + 0.5


def test_facets_narrow_the_search_and_keep_alternatives(visit: Callable) -> None:
    page = visit("/?q=a+ball").page
    labels = page.locator(".facets fieldset", has_text="label").first
    # Scenes do not know when and where they were made.
    expect(page.locator(".overview")).to_be_hidden()
    first, second = labels.locator("label").nth(0), labels.locator("label").nth(1)
    name, amount = first.locator(".facet-name").inner_text(), int(first.locator(".facet-count").inner_text())
    first.click()
    expect(page.locator(".active-filters li")).to_have_count(1)
    expect(page.locator(".summary")).to_have_text(re.compile(rf"^{amount} pictures? searched"))
    expect(first.get_by_role("checkbox")).to_be_checked()
    more = int(second.locator(".facet-count").inner_text())
    second.click()
    expect(page.locator(".summary")).to_have_text(re.compile(rf"^{amount + more} pictures searched"))
    page.get_by_role("button", name=re.compile(f"Remove the filter label.{name}")).click()
    expect(page.locator(".summary")).to_have_text(re.compile(rf"^{more} pictures? searched"))


def test_ranges_and_own_filters(visit: Callable) -> None:
    page = visit().page
    page.get_by_label("from").fill("1990")
    page.keyboard.press("Enter")
    expect(page.locator(".active-filters")).to_contain_text("year>=1990")
    page.get_by_label("Custom filter").fill("colour=red or colour=blue")
    page.keyboard.press("Enter")
    expect(page.locator(".active-filters li")).to_have_count(2)
    expect(page.locator(".summary")).to_have_text(re.compile("left by the filters$"))
    assert 0 < int(page.locator(".summary").inner_text().split()[0]) < 80
    page.get_by_label("Custom filter").fill("colour=nothing")
    page.keyboard.press("Enter")
    expect(page.locator(".above .notice h2")).to_have_text("No matching items")
    page.locator(".above .notice button").click()
    expect(page.locator(".active-filters li")).to_have_count(0)


def test_a_filter_that_is_none_is_refused_at_its_field(visit: Callable) -> None:
    page = visit(expected=("status of 422", "422 ")).page
    field = page.get_by_label("Custom filter")
    field.fill("year >>= 1990 and")
    field.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#own-filter-error")).not_to_be_empty()
    expect(field).to_have_value("year >>= 1990 and")
    expect(page.locator(".active-filters li")).to_have_count(0)
    expect(page.locator(TILE).first).to_be_visible()
    field.fill("year>=1990")
    expect(page.locator("#own-filter-error")).to_be_empty()
    field.press("Enter")
    expect(page.locator(".active-filters li")).to_have_count(1)
    expect(field).to_have_value("")


def test_help_explains_the_language(visit: Callable) -> None:
    page = visit().page
    page.get_by_role("button", name="Query syntax").click()
    expect(page.locator("#query-help")).to_contain_text("unlike the second")
    page.keyboard.press("Escape")
    expect(page.locator("#query-help")).to_be_hidden()


def test_ranks_run_from_left_to_right(visit: Callable) -> None:
    page = visit("/?q=a+fish").page
    expect(page.locator(TILE).nth(9)).to_be_visible()
    lefts = page.locator(".tile:not(.below)").evaluate_all(
        "tiles => tiles.slice(0, 4).map((tile) => tile.getBoundingClientRect().left)"
    )
    assert lefts == sorted(lefts)
    order = page.evaluate(
        """async () => {
            const { Masonry } = await import("/static/js/parts/masonry.js");
            const host = document.createElement("ol");
            host.style.width = "640px";
            host.style.setProperty("--foot", "1");
            host.style.setProperty("--tile", "200px");
            for (const shape of [1, 1.05, 1.1, 1]) {
                const tile = document.createElement("li");
                tile.dataset.shape = shape;
                host.append(tile);
            }
            document.body.append(host);
            new Masonry(host).layOut();
            return [...host.children].map((tile) => tile.style.transform.match(/[\\d.]+/)[0]);
        }"""
    )
    # The first column is a little longer than the others, and yet the fourth tile begins the second row.
    assert float(order[3]) == 0.0


def test_the_part_of_a_picture_that_answers_is_framed(visit: Callable) -> None:
    page = visit("/").page
    frames = page.evaluate(
        """async () => {
          const { pictureBoxes } = await import("/static/js/parts/picture-boxes.js");
          const region = { left: 0.3, top: 0.6, right: 0.7, bottom: 1, place: "lower middle" };
          const drawn = pictureBoxes({ region }, { width: 200, height: 100 }, "meet");
          const none = [pictureBoxes({}, { width: 200, height: 100 }, "meet"), pictureBoxes({ region }, {}, "meet")];
          return [drawn.querySelector(".region").getAttribute("points"), ...none];
        }"""
    )
    assert frames == ["60,60 140,60 140,100 60,100", None, None]


def test_a_word_in_a_picture_is_framed_where_it_stands(visit: Callable) -> None:
    page = visit("/?q=kaliso").page
    tile = page.locator(TILE).first
    expect(tile.locator(".mark")).to_have_text("text in picture")
    expect(tile.locator(".picture-boxes polygon")).to_have_count(1)
    tile.locator(".tile-link").click()
    detail = page.locator(".detail[open]")
    expect(detail.locator(".picture-text")).to_contain_text("Kaliso")
    expect(detail.locator(".detail-score")).to_contain_text("found by its words (text in picture)")
    frame = detail.locator(".picture-boxes polygon").bounding_box()
    drawn = page.evaluate(
        """() => {
          const image = document.querySelector(".stage img");
          const box = image.getBoundingClientRect();
          const scale = Math.min(box.width / image.naturalWidth, box.height / image.naturalHeight);
          const size = [image.naturalWidth * scale, image.naturalHeight * scale];
          return [box.left + box.width / 2, box.top + box.height / 2, ...size];
        }"""
    )
    middle, centre, width, height = drawn
    assert frame["x"] + frame["width"] / 2 == pytest.approx(middle, abs=2)
    assert frame["width"] == pytest.approx(width / 2, abs=14)
    assert frame["y"] == pytest.approx(centre, abs=10)
    assert frame["height"] == pytest.approx(height / 4, abs=14)


def test_a_search_is_kept_and_shared(visit: Callable) -> None:
    visited = visit(
        "/?q=a+fish&f=year%3E%3D1950&words=similarity&by=topics", permissions=["clipboard-write", "clipboard-read"]
    )
    page = visited.page
    share = page.get_by_role("button", name="Share")
    first = page.locator(".tile .tile-link").first
    expect(first).to_be_visible()
    asked = page.url
    share.click()
    page.get_by_role("button", name="Copy link to this search").click()
    page.wait_for_function("(asked) => navigator.clipboard.readText().then((text) => text === asked)", arg=asked)
    share.click()
    page.get_by_role("button", name="Save search …").click()
    page.get_by_role("textbox", name="Name").fill("Fish, by topics")
    page.get_by_role("button", name="Save", exact=True).click()
    found = first.get_attribute("aria-label")
    page.locator(".tile").first.hover()
    page.locator(".tile").first.get_by_role("button", name="Add to album").click()
    page.get_by_role("textbox", name="New album").fill('My "best"')
    page.get_by_role("button", name="Done").click()
    panel = page.get_by_role("complementary", name="Filters")
    panel.get_by_role("link", name='My "best"').click()
    expect(page.locator(".tile")).to_have_count(1)
    expect(page.locator(".summary")).to_have_text("1 item left by the filters")
    share.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as web gallery (zip)").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert "<h1>My &#34;best&#34;</h1>" in archive.read("index.html").decode()
    # A saved search brings back all of it, and so does the way back.
    panel.get_by_role("link", name="Fish, by topics").click()
    expect(page).to_have_url(re.compile("q=a\\+fish.*words=similarity&by=topics"))
    expect(first).to_have_attribute("aria-label", found or "")
    page.go_back()
    expect(page.locator(".tile")).to_have_count(1)
    page.locator(".tile").first.hover()
    page.locator(".tile").first.get_by_role("button", name="Add to album").click()
    page.get_by_role("checkbox", name='My "best"').uncheck()
    page.get_by_role("button", name="Done").click()
    expect(panel.get_by_text("0", exact=True)).to_be_visible()
    panel.get_by_role("button", name="Rename Fish, by topics").click()
    page.get_by_role("textbox", name="Name").fill("Fish")
    page.get_by_role("button", name="Rename", exact=True).click()
    for name in ("Fish", 'My "best"'):
        panel.get_by_role("button", name=f"Delete {name}", exact=True).click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(panel.get_by_role("link", name=name)).to_have_count(0)


def test_the_least_probability_of_a_search_is_shown_kept_and_taken_along(visit: Callable) -> None:
    page = visit("/?q=a+fish&words=similarity").page
    expect(page.locator(".tile").nth(20)).to_be_attached()
    shares = page.evaluate(
        """() => fetch("/v1/collections/scenes/search?q=a+fish&mode=similarity&limit=30")
          .then((answer) => answer.json())
          .then(({ answers }) => answers.map(({ probability }) => probability))"""
    )
    least, likely = shares[2], sum(share >= shares[2] for share in shares)
    page.goto(f"{page.url}&least={least}")
    expect(page.locator(".tile")).to_have_count(likely)
    active = page.get_by_role("list", name="Active filters")
    expect(active).to_contain_text("likely")
    share = page.get_by_role("button", name="Share")
    share.click()
    page.get_by_role("button", name="Save search …").click()
    page.get_by_role("textbox", name="Name").fill("Surely a fish")
    page.get_by_role("button", name="Save", exact=True).click()
    share.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download pictures (zip)").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert sum(name.endswith(".png") for name in archive.namelist()) == likely
    active.get_by_role("button", name="Remove the least probability").click()
    expect(page.locator(".tile").nth(20)).to_be_attached()
    panel = page.get_by_role("complementary", name="Filters")
    panel.get_by_role("link", name="Surely a fish").click()
    expect(page.locator(".tile")).to_have_count(likely)
    expect(active).to_contain_text("likely")
    panel.get_by_role("button", name="Delete Surely a fish").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(panel.get_by_role("link", name="Surely a fish")).to_have_count(0)


def test_nothing_above_the_least_probability_says_so(visit: Callable) -> None:
    page = visit("/?q=a+fish&words=similarity&least=1").page
    page.get_by_role("button", name="Show the nearest").click()
    expect(page.locator(".tile").first).to_be_visible()
    assert "least=" not in page.url


def test_what_can_only_be_read_offers_no_changes(visit: Callable) -> None:
    page = visit("/?q=a+fish", signed_in=False).page
    expect(page.locator(".tile").first).to_be_visible()
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_role("button", name="Copy link to this search")).to_be_visible()
    expect(page.get_by_role("link", name="Download pictures (zip)")).to_be_visible()
