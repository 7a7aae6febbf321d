"""The model card: the text of `model_card.md` with what the retrievers answered, and the record of that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from diptych.encoders import EfficientNetLite
from shipped_measures import Languages, Recalls

RECORD = Path(__file__).with_name("model_card.json")
TEXT = Path(__file__).with_name("model_card.md")
_USES = {"default": "what `diptych index` takes", "strong": "better answers"}


@dataclass(frozen=True)
class Tuning:
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


@dataclass(frozen=True)
class Asked:
    """What a finished retriever answered, how large its file is, and how many photos it encodes in a second."""

    recalls: dict[str, Recalls]
    class_names: dict[str, tuple[float, float]]
    calibration_error: dict[str, float]
    megabytes: float
    photos_per_second: float


@dataclass(frozen=True)
class CardRecord:
    """All numbers of the card."""

    asked: dict[str, Asked]
    languages: Languages
    tuning: Tuning
    prior: float

    def write(self) -> None:
        """Write the record, numbers as the card has them."""
        text = TypeAdapter(CardRecord).dump_json(self)
        rounded = json.loads(text, parse_float=lambda number: round(float(number), 4))
        RECORD.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


def read_record() -> CardRecord:
    """Read the record."""
    return TypeAdapter(CardRecord).validate_json(RECORD.read_bytes())


def model_card(record: CardRecord, networks: Mapping[str, Sequence[EfficientNetLite]]) -> str:
    """Return the text of the model card."""
    return TEXT.read_text(encoding="utf-8").format(
        tuning=record.tuning,
        languages=record.languages,
        taught_epochs=len(record.tuning.taught_losses[0]),
        one_in=round(1 / record.prior),
        variants=_variants(record.asked, networks),
        recalls=_recalls(record.asked),
        class_names=_class_names(record.asked),
        sentences=", ".join(f"{value:.3f} ({language})" for language, value in record.languages.sentences.items()),
        queries=_shares(record.languages.queries),
        calibration=_calibration(record.asked),
    )


def _variants(asked: Mapping[str, Asked], networks: Mapping[str, Sequence[EfficientNetLite]]) -> str:
    lines = []
    for name, chosen in networks.items():
        each = asked[name]
        used = " and ".join(
            f"EfficientNet-Lite{one.network[4]} at {one.square.side}{', also mirrored' if one.mirror else ''}"
            for one in chosen
        )
        lines.append(f"| `{name}` | {used} | {each.megabytes:.1f} MB | {each.photos_per_second:.0f} | {_USES[name]} |")
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


def _calibration(asked: Mapping[str, Asked]) -> str:
    return "; ".join(
        f"`{name}` {each.calibration_error['text_to_image']:.3f} for text and "
        f"{each.calibration_error['image_to_text']:.3f} for picture queries"
        for name, each in asked.items()
    )


def _shares(found: Mapping[str, float]) -> str:
    return ", ".join(f"{language} {value / found['en']:.2f}" for language, value in found.items() if language != "en")
