"""A new user's first hour, from the first pictures to the way back from what was learned: by keyboard, by mouse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Response, expect

from diptych import Retriever
from diptych.collection import Collection, Record
from diptych.data import Pairs
from diptych.data.datasets.scenes import Scene, make_scene, write_folder
from diptych.encoders import ColourEdgeHistograms, TfidfTopics
from diptych.models import Random
from diptych.service.clicks import ClickLog
from diptych.service.clicks.exports import text_query_searches
from tests.browser.axe import serious
from tests.browser.test_keyboard import FOCUS_IS_DRAWN

N_SCENES, N_QUERIES, N_SEARCHES, FOUND, SHOWN, N_PEOPLE = 90, 40, 1200, 20, 10, 300
# What one of them asks and clicks in the browser, as others do.
ON_THE_PAGE = (1000, 1002)
LONG = 120_000
PHOTOGRAPHS = {"2019-07-14": "teal", "2020-12-24": "white"}
DIRECTION = """(element) => {
  const focused = document.activeElement;
  if (!element.isConnected) return "gone";
  if (element === focused) return "here";
  return focused.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING ? "Tab" : "Shift+Tab";
}"""


class Mouse:
    """Reaches things by pointing at them."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, what: Locator) -> None:
        what.click()

    def write(self, what: Locator, text: str) -> None:
        self.select(what)
        self.page.keyboard.type(text)

    def paste(self, what: Locator, text: str) -> None:
        self.select(what)
        self.page.keyboard.insert_text(text)

    def select(self, what: Locator) -> None:
        what.click(click_count=3)

    def choose_files(self, file: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            self.press(self.page.get_by_text("choose files"))
        chooser.value.set_files(file)

    def open_answer(self, number: int) -> None:
        self.press(self.page.locator(".tile .tile-link").nth(number))


class Keyboard(Mouse):
    """Reaches things by going from one to the next, and sees where it is all the time."""

    def press(self, what: Locator) -> None:
        self._reach(what)
        self.page.keyboard.press("Enter")

    def select(self, what: Locator) -> None:
        if what.get_attribute("role") == "combobox" and what.evaluate(DIRECTION) != "here":
            # As the help for keys says.
            self.page.keyboard.press("/")
        self._reach(what)
        self.page.keyboard.press("Control+A")

    def choose_files(self, file: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            self._reach(self.page.locator("#add-files"))
            self.page.keyboard.press("Enter")
        chooser.value.set_files(file)

    def open_answer(self, number: int) -> None:
        # From the question to the first answer, and on.
        for key in ("ArrowDown", *("ArrowRight",) * number):
            self.page.keyboard.press(key)
        expect(self.page.locator(".tile .tile-link").nth(number)).to_be_focused()
        self.page.keyboard.press("Enter")

    def _reach(self, what: Locator) -> None:
        expect(what).to_be_enabled()
        # To look for it by its role and name at every step would take longer than the steps.
        element = what.element_handle()
        while (direction := element.evaluate(DIRECTION)) != "here":
            if direction == "gone":
                element = what.element_handle()
            else:
                self.page.keyboard.press(direction)
        assert self.page.evaluate(FOCUS_IS_DRAWN), what


@pytest.fixture(scope="module")
def beginner(tmp_path_factory: pytest.TempPathFactory, serve: Callable):
    """A folder whose search model ranks by luck, with captions and clicks from which it could be a better one."""
    folder = write_folder(tmp_path_factory.mktemp("first-hour") / "scenes", N_SCENES, size=32)
    entries = json.loads((folder / "captions.json").read_text())["pictures"]
    (folder / "captions.json").unlink()
    records = [Record(folder / entry["file"], captions=entry["captions"][:2]) for entry in entries]
    pairs = Pairs(
        [record.path for record in records],
        [caption for record in records for caption in record.captions or ()],
        owners=[row for row, record in enumerate(records) for _ in record.captions or ()],
    )
    encoders = {"image_encoder": ColourEdgeHistograms(size=16), "text_encoder": TfidfTopics(n_components=12)}
    # The other photographs that training is measured on are ranked by luck as well: this one has little of it.
    lucky = Random(n_components=8, random_state=3)
    by_luck = Retriever(model=lucky, name="by luck", cache=False, **encoders).fit(pairs, baseline=None)
    with Collection.create(folder / ".diptych", by_luck, root=folder) as collection:
        assert collection.add(records).added == N_SCENES
        _click_on_what_was_meant(collection)
    return serve(folder)


def _places(collection: Collection) -> dict[str, str]:
    """Return where each scene plays; what people added is no scene."""
    numbers = {item.id: Path(item.path).stem.rpartition("-")[2] for item in collection if "scene-" in item.path}
    return {item: make_scene(int(number)).background for item, number in numbers.items()}


def _click_on_what_was_meant(collection: Collection) -> None:
    """People ask what others ask, too, are shown anything, and click mostly on the place, more often on the first."""
    places, chance = _places(collection), np.random.default_rng(0)
    found = [chance.permutation([*places])[:FOUND] for _ in range(N_QUERIES)]
    with ClickLog(collection.store) as log:
        for _ in range(N_SEARCHES):
            number, person = int(chance.integers(N_QUERIES)), int(chance.integers(N_PEOPLE))
            meant = make_scene(1000 + number)
            drawn = chance.permutation(found[number])[:SHOWN]
            shown = [(str(item), place) for place, item in enumerate(drawn, start=1)]
            asked = log.record_search(
                query=meant.captions[0],
                retriever="by luck",
                fingerprint="f",
                target="images",
                shown=shown,
                no_good_match=False,
                best_probability=0.5,
                visitor=f"person {person}",
            )
            for item, place in shown:
                if chance.random() < (0.9 if places[item] == meant.background else 0.02) / place**0.5:
                    log.record_click(search_id=str(asked), item=item, position=place, kind="open")


def _photograph(path: Path, taken: str, colour: str) -> Path:
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = f"{taken.replace('-', ':')} 12:00:00"
    Image.new("RGB", (48, 32), colour).save(path, exif=exif)
    return path


@pytest.mark.parametrize("kind", [Keyboard, Mouse])
def test_a_first_hour(visit: Callable, beginner, tmp_path: Path, kind: type[Mouse]) -> None:
    page = visit(at=beginner, bypass_csp=True, expected=("422",)).page
    hand = kind(page)
    for taken, colour in PHOTOGRAPHS.items():
        _photograph(beginner.pictures / f"{kind.__name__} {taken}.jpg", taken, colour)
    _index(page, hand)
    # Those of the other hour as well, where that was before and here.
    _search_and_filter(page, hand, of_july=len([*beginner.pictures.glob("*2019-07-14.jpg")]))
    _add(page, hand, _photograph(tmp_path / f"by {kind.__name__}.jpg", "2021-05-01", "orange"))
    # Both index, which is started and followed as every job is; what takes the processor longer is done by one of them.
    if kind is Mouse:
        _train_and_go_back(page, hand)
    else:
        _learn_and_go_back(page, hand, beginner.pictures / ".diptych")
    hand.press(page.get_by_role("link", name="Log"))
    with page.expect_download() as download:
        hand.press(page.get_by_role("button", name="Export clicks as CSV"))
    assert make_scene(1000).captions[0].lower() in Path(download.value.path()).read_text()
    assert serious(page) == []


def _index(page: Page, hand: Mouse) -> None:
    hand.press(page.get_by_role("link", name="Jobs"))
    hand.press(page.get_by_role("button", name="Start: Index the folder"))
    expect(page.locator(".job.done, .job.failed").first).to_contain_text("2 added", timeout=LONG)


def _search_and_filter(page: Page, hand: Mouse, of_july: int) -> None:
    hand.press(page.get_by_role("link", name="Search", exact=True))
    hand.write(page.get_by_role("combobox", name="Search"), "a photograph of the sea")
    page.keyboard.press("Enter")
    expect(page.locator(".tile .score").first).to_be_visible()
    own = page.get_by_label("Custom filter")
    hand.write(own, "taken>>2019")
    page.keyboard.press("Enter")
    expect(page.locator("#own-filter-error")).not_to_be_empty()
    expect(own).to_have_value("taken>>2019")
    hand.write(own, "taken:2019-07")
    page.keyboard.press("Enter")
    expect(page.locator(".active-filters li")).to_have_text("taken:2019-07")
    expect(page.locator(".tile")).to_have_count(of_july)
    hand.press(page.get_by_role("button", name="Remove the filter taken:2019-07"))
    expect(page.locator(".active-filters li")).to_have_count(0)


def _add(page: Page, hand: Mouse, file: Path) -> None:
    hand.press(page.get_by_role("button", name="Add pictures"))
    hand.choose_files(file)
    hand.write(page.get_by_label(f"Captions of {file.name}"), "an orange square")
    hand.write(page.get_by_label("Labels for all of them"), "squares, orange")
    hand.press(page.get_by_role("button", name="Add 1 picture"))
    expect(page.get_by_text("1 picture added.")).to_be_visible()


def _train_and_go_back(page: Page, hand: Mouse) -> None:
    hand.press(page.get_by_role("link", name="Jobs"))
    hand.press(page.get_by_role("button", name="Start: Train on the captions"))
    expect(page.locator(".job").first).to_contain_text("is in use now", timeout=LONG)
    hand.press(page.get_by_role("link", name="Compare"))
    hand.press(page.get_by_role("button", name="Go back to by luck"))
    _confirm(page, hand, "Go back")


def _learn_and_go_back(page: Page, hand: Mouse, home: Path) -> None:
    with Collection.open(home) as collection:
        places = _places(collection)
    before = [_search_and_click(page, hand, home, meant, places) for meant in map(make_scene, ON_THE_PAGE)]
    _learn(page, hand, places)
    after = [_answers(page, hand, make_scene(number).captions[0]) for number in ON_THE_PAGE]
    for number, old, new in zip(ON_THE_PAGE, before, after, strict=True):
        assert _right(new[:SHOWN], number, places) > _right(old[:SHOWN], number, places)
    _roll_back(page, hand)
    assert [_answers(page, hand, make_scene(number).captions[0]) for number in ON_THE_PAGE] == before


def _right(items: Iterable[str], number: int, places: dict[str, str]) -> int:
    """Count the pictures of the place that is meant."""
    return sum(places.get(item) == make_scene(number).background for item in items)


def _answers(page: Page, hand: Mouse, query: str) -> list[str]:
    """Ask what others have asked, and return the items that the page shows."""
    if "/log" in page.url:
        hand.press(page.get_by_role("link", name="Search", exact=True))

    # What was asked last is asked again when the search is opened, and every word while it is written.
    def is_answer(answer: Response) -> bool:
        asked = answer.request.post_data or ""
        return query in asked and '"log":true' in asked

    with page.expect_response(is_answer) as answered:
        # What is written is searched for after every few letters, which one search of each hour shows.
        hand.paste(page.get_by_role("combobox", name="Search"), query)
        page.keyboard.press("Enter")
    return [answer["id"] for answer in answered.value.json()["answers"]]


def _search_and_click(page: Page, hand: Mouse, home: Path, meant: Scene, places: dict[str, str]) -> list[str]:
    found = _answers(page, hand, meant.captions[0])
    wanted = next(place for place, item in enumerate(found) if places.get(item) == meant.background)
    tile = page.locator(".tile .tile-link").nth(wanted)
    expect(tile).to_have_attribute("href", re.compile(found[wanted]))
    with page.expect_response(re.compile("/clicks$")) as clicked:
        hand.open_answer(wanted)
    assert clicked.value.status == 201
    page.keyboard.press("Escape")
    with Collection.open(home) as collection:
        *_, (_, visitor, _, query, first, items, positions) = text_query_searches(collection.store)
    assert (query, first, [*items], positions) == (meant.captions[0].lower(), 1, found, {wanted + 1})
    assert visitor is not None, "whoever signed in is a visitor"
    return found


def _learn(page: Page, hand: Mouse, places: dict[str, str]) -> None:
    """Learn from all clicks, and see what for: more pictures of what was meant than before."""
    hand.press(page.get_by_role("link", name="Log"))
    hand.press(page.get_by_role("button", name="Learn now"))
    expect(page.get_by_role("button", name="Roll back to by luck")).to_be_visible(timeout=LONG)
    # The newest comes first; the other hour may have learned before.
    steps = page.get_by_role("article").filter(has=page.get_by_role("heading", name="by luck → learned from clicks"))
    step = steps.first
    expect(step).to_contain_text("Later searches are answered better, by more than luck.")
    expect(step).to_contain_text(re.compile(r"DCG \d\.\d+ → \d\.\d+ on later searches for \d+ queries"))
    hand.press(step.get_by_text("All numbers"))
    expect(step.get_by_role("row", name=re.compile(r"Queries asked before \d+ ?%"))).to_contain_text("p < 0.001")
    hand.press(step.get_by_text("Queries that changed most"))
    asked = {make_scene(number).captions[0].lower(): number for number in range(1000, 1000 + N_QUERIES)}
    gained = [row for row in step.get_by_role("row").all() if row.locator(".strip").count()]
    right = np.array(
        [[_right(items, asked[query], places) for items in strips] for query, *strips in map(_strips, gained)]
    )
    before, after = right.sum(axis=0)
    assert after > before
    expect(page.get_by_label("Search model one")).to_contain_text(re.compile(r"learned from clicks( 2)? \(in use\)"))


def _strips(row: Locator) -> tuple[str, list[str], list[str]]:
    """Return a query with its first pictures before and after."""
    strips = [row.get_by_role("img", name=f"First pictures of {name}") for name in ("by luck", "learned from clicks")]
    for strip in strips:
        expect(strip.locator("img")).to_have_count(5)
    sources = [[image.get_attribute("src") or "" for image in strip.locator("img").all()] for strip in strips]
    before, after = ([re.search("/items/([^/]+)/", source)[1] for source in each] for each in sources)
    return row.get_by_role("rowheader").inner_text(), before, after


def _roll_back(page: Page, hand: Mouse) -> None:
    hand.press(page.get_by_role("link", name="Log"))
    hand.press(page.get_by_role("button", name="Roll back to by luck"))
    _confirm(page, hand, "Roll back")


def _confirm(page: Page, hand: Mouse, name: str) -> None:
    """Say yes, and wait for the step; the other hour may have gone back before, and it is on the page already."""
    steps = page.get_by_role("heading", name="Back to by luck")
    before = steps.count()
    hand.press(page.get_by_role("button", name=name, exact=True))
    expect(steps).to_have_count(before + 1)
