"""What the score loses without each word."""

from __future__ import annotations

import re
from typing import ClassVar

from diptych.encoders.text.stop_words import find_stop_words
from diptych.models import CrossModalModel, Random
from diptych.retriever.explaining.contribution import Contribution
from diptych.retriever.explaining.explainer import Explainer
from diptych.retriever.explaining.inner_model import inner_model
from diptych.retriever.explaining.match import Match
from diptych.retriever.explaining.phrases import counted, listed, quoted
from diptych.retriever.explaining.subject import Subject
from diptych.retriever.explaining.view import View, ViewKind

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_MOST_WORDS = 20
_NAMED = 3
# A word that moves the score by less than this share of what the strongest one does is not worth a mention.
_WORTH_NAMING = 0.2


class LeftOutWords(Explainer):
    """For every model with a text on either side: each word left out, the rest encoded anew.

    The contribution of a word is s(text) − s(text without the word), with no approximation but one: words help each
    other, so contributions do not sum to the score.

    Li, Monroe and Jurafsky, "Understanding neural networks through representation erasure", 2016.
    """

    kind: ClassVar[ViewKind] = "words"

    def reads_model(self, model: CrossModalModel) -> bool:
        """Say whether points follow from what the text says."""
        return not isinstance(inner_model(model), Random)

    def views(self, match: Match) -> list[View]:
        """Return the words of the query, then those of the answer, where they are texts."""
        if not self.reads_model(match.retriever.model_):
            return []
        views = [self._view(match, side) for side in (match.query, match.answer) if side.words is not None]
        return [view for view in views if view is not None]

    def _view(self, match: Match, side: Subject) -> View | None:
        words = side.words or ""
        chosen, n_skipped = _chosen(words)
        if not chosen:
            return None
        without = [_without(words, word) for word in chosen]
        scores = match.scores_instead(side, match.text_points(without))
        whole = match.score
        # Nothing is left without an only word: it brings the whole score.
        alone = whole - match.score_of_nothing
        losses = [whole - float(score) if rest else alone for rest, score in zip(without, scores, strict=True)]
        bars = [Contribution(word[0], None, None, loss) for word, loss in zip(chosen, losses, strict=True)]
        title = "Words of the query" if side is match.query else "Words of the text"
        return View(self.kind, title, _sentence(match, bars), tuple(bars), _note(whole, n_skipped))


def _chosen(text: str) -> tuple[list[re.Match[str]], int]:
    """Return the words to leave out in turn; of a long text the first that are not mere function words."""
    words = list(_WORD.finditer(text))
    if len(words) <= _MOST_WORDS:
        return words, 0
    dropped = find_stop_words("english")
    telling = [word for word in words if word[0].lower() not in dropped][:_MOST_WORDS]
    return telling, len(words) - len(telling)


def _without(text: str, word: re.Match[str]) -> str:
    return " ".join((text[: word.start()] + text[word.end() :]).split())


def _sentence(match: Match, bars: list[Contribution]) -> str:
    dropped = find_stop_words("english")
    telling = [bar for bar in bars if bar.name.lower() not in dropped and len(bar.name) > 1] or bars
    least = _WORTH_NAMING * max(abs(bar.contribution) for bar in telling)
    ranked = sorted(telling, key=lambda bar: -abs(bar.contribution))
    named = [bar for bar in ranked if abs(bar.contribution) >= least and bar.contribution != 0]
    wanted = [quoted(bar.name) for bar in named if bar.contribution > 0][:_NAMED]
    unwanted = [quoted(bar.name) for bar in named if bar.contribution < 0][:_NAMED]
    noun = f"this {match.answer_noun}"
    if not wanted and not unwanted:
        return f"No single word decides about {noun}."
    parts = []
    if wanted:
        parts.append(f"{listed(wanted)} {'speaks' if len(wanted) == 1 else 'speak'} most for {noun}")
    if unwanted:
        verb = "speaks" if len(unwanted) == 1 else "speak"
        parts.append(f"{listed(unwanted)} {verb} against {'it' if wanted else noun}")
    return "; ".join(parts) + "."


def _note(score: float, n_skipped: int) -> str:
    skipped = f" {counted(n_skipped, 'word')} of this long text were not tried." if n_skipped else ""
    return (
        f"Each word was left out and the rest encoded anew: its contribution is what the score, {score:.3f}, loses. "
        f"Words help each other, so the losses do not add up to it.{skipped}"
    )
