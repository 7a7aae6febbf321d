"""The recorded searches, by their kinds: (query, options) asked of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

Question = tuple[str, str, dict[str, Any]]
TEXTS = {"target": "texts"}

ITEMS = "000 007 020 038 047 066 077 099 107 126 131 133 144 168 187 198 212 230"
PICTURES = " ".join(str(number) for number in range(260, 276))
FILTERED = {
    "label:dog": "running|<261>|something",
    "label:dog and label:grass": "two animals|jumping",
    "not label:dog": "dog|beach",
    "year>=2018": "snow|a man",
    "taken:2019-07": "people",
    "taken<=2016-05": "children",
    "rating=5": "water|<263>",
    "rating>3 and not label:man": "a man",
    'camera="Pixel 6"': "dog|dog + snow",
    'camera:canon or camera="X T"': "street",
    "caption:jumping": "a dog|boy",
    "path:2017/*": "a girl|item:007",
    "name:photo-1?0*": "sport",
    "near:38.7,-9.1": "dog|city",
    'within:"5km of 50.09,14.42"': "people outside",
    "kind:picture": "dog",
    'album:"Dogs outside"': "running|toy",
    "width<height": "a person",
    "id:107": "bridge",
    "label:d*g": "swimming",
    "label:nothing": "dog",
    "month:7 or month=8": "beach",
}
HYBRID_FILTERS = ("label:dog", "year<2018", "rating>=4")


def questions() -> dict[str, list[Question]]:
    """Return the searches by their kinds."""
    return {
        "words": [*_all("words")],
        "names": [*_all("names")],
        "keywords": [*_all("keywords", hybrid=1.0), *_all("keywords", hybrid=0.5)],
        "languages": [*_all("languages")],
        "joined": [*_all("joined")],
        "similar": [("photographs", f"item:{item}", {}) for item in ITEMS.split()],
        "pictures": [("photographs", f"<{number}>", {}) for number in PICTURES.split()],
        "filtered": [
            *(
                ("photographs", query, {"filter": chosen})
                for chosen, asked in FILTERED.items()
                for query in asked.split("|")
            ),
            *(
                ("photographs", "a dog in the water", {"filter": chosen, "hybrid": weight})
                for chosen in HYBRID_FILTERS
                for weight in (0.5, 1.0)
            ),
        ],
        "texts": [
            *_all("texts", **TEXTS),
            *(("photographs", f"<{number}>", TEXTS) for number in PICTURES.split()[::2]),
            *(("photographs", f"item:{item}", TEXTS) for item in ITEMS.split()[::3]),
            ("photographs", "dog", {**TEXTS, "hybrid": 0.5}),
            ("photographs", "dog", {**TEXTS, "filter": "kind:text"}),
            ("photographs", "<270>", {**TEXTS, "filter": "label:boy"}),
        ],
        "regions": [
            *(("regions", query, {"k": 6}) for query in _lines("regions")),
            ("regions", "a dog", {"k": 6, "regions": False}),
            ("regions", "<270>", {"k": 6}),
        ],
        "pages": [
            ("photographs", "a dog in the water", {"k": 3}),
            ("photographs", "a dog in the water", {"k": 3, "offset": 3}),
            ("photographs", "a dog in the water", {"k": 3, "offset": 258}),
            ("photographs", "a dog in the water", {"k": 5, "exact": True}),
            ("photographs", "a dog in the water", {"k": 5, "exact": False}),
            ("photographs", "a dog in the water", {"k": 30, "min_probability": 0.2}),
            ("photographs", "an elephant in the jungle", {"k": 5, "min_probability": 0.2}),
        ],
        "refused": [
            *_all("refused"),
            ("photographs", "dog", {"filter": "label:"}),
            ("photographs", "dog", {"filter": "(label:dog"}),
            ("photographs", "dog", {"filter": "album:Unknown"}),
            ("photographs", "dog", {"k": 0}),
            ("photographs", "dog", {"offset": -1}),
            ("photographs", "dog", {"target": "sounds"}),
            ("photographs", "dog", {"hybrid": 2.0}),
            ("photographs", "dog", {"retriever": "unknown"}),
        ],
    }


def _all(section: str, **options: Any) -> Iterator[Question]:
    return (("photographs", query, options) for query in _lines(section))


def _lines(section: str) -> list[str]:
    """Return the queries of a section of ``questions.txt``."""
    text = Path(__file__).with_name("questions.txt").read_text()
    return text.partition(f"[{section}]\n")[2].partition("\n\n")[0].splitlines()
