"""Whether a search model that was learned may take the place of the one before: what was measured, and the gate."""

from __future__ import annotations

from dataclasses import dataclass, field

from diptych.errors import counted
from diptych.estimators import BaseEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class Comparison(BaseEstimator):
    """What a new model and the one it had to beat do with held-out pictures, and whether that opens the gate.

    The gate asks for three things. Held-out pictures and their texts find each other better (MAP, both directions, a
    picture counting as one), by more than luck: a paired randomisation test gives p < ``alpha``, on at least ``fewest``
    pictures. What the one before could do besides is not lost: on photographs that have nothing to do with the pairs,
    95 % sure, MAP falls by at most ``margin``. And where it refuses as many queries for nothing as searches did before,
    the share of one's own captions and words that get an answer falls by at most ``margin``. Without a model to beat
    there is no gate.

    Parameters
    ----------
    n_held_out : int
        Pictures that were held out, once each.
    new, old : float
        Mean values of MAP; ``old`` is None where there was nothing to beat.
    chance : float
        What luck gives.
    baseline : str or None
        The one before.
    p_value, low, high : float or None
        Of the difference: the test, and the ends of its 95 % interval.
    rest_old, rest_new, rest_low : float or None
        MAP on other photographs, and the lower end of the interval of the difference, which is no lower than down to
        luck; ``n_rest`` are the photographs.
    refused_old, refused_new : float or None
        Shares of ``n_absent`` queries for what is not there that are refused.
    answered_old, answered_new : float or None
        Shares of held-out captions and words that get a good match.
    n_pictures, n_more_images, n_more_texts : int
        Pictures with texts, pictures without and texts without a picture that were there to learn from.
    learned : str
        What was done with the one before, in words, where it stays beside what was learned.
    next_pictures : list of str
        Where the pairs are too few to tell: pictures whose captions would tell most.
    replaced, forced : bool
        Whether the new model was taken, and whether that was against the gate.

    Examples
    --------
    >>> from diptych.retriever import Comparison
    >>> close = Comparison(n_held_out=100, new=0.41, chance=0.02, baseline="default", old=0.40, p_value=0.694)
    >>> close.passes, close.reason
    (False, 'it is better on held-out pictures, but that may be luck (p = 0.694, and below 0.01 is asked for)')
    >>> print(close)
    MAP 0.410 on 100 held-out pictures, default 0.400: better by 0.010 (p = 0.694), chance 0.020
    """

    n_held_out: int
    new: float
    chance: float
    baseline: str | None = None
    old: float | None = None
    p_value: float | None = None
    low: float | None = None
    high: float | None = None
    alpha: float = 0.01
    fewest: int = 20
    rest_old: float | None = None
    rest_new: float | None = None
    rest_low: float | None = None
    n_rest: int = 0
    refused_old: float | None = None
    refused_new: float | None = None
    n_absent: int = 0
    answered_old: float | None = None
    answered_new: float | None = None
    margin: float = 0.05
    n_pictures: int = 0
    n_more_images: int = 0
    n_more_texts: int = 0
    learned: str = ""
    next_pictures: list[str] = field(default_factory=list)
    replaced: bool = True
    forced: bool = False

    @property
    def is_better(self) -> bool:
        """Whether the new model has the larger value, by chance or not."""
        return self.old is None or self.new > self.old

    def is_significant(self, level: float = 0.05) -> bool:
        """Whether the difference is more than luck at this level."""
        return self.p_value is not None and self.p_value < level

    @property
    def passes(self) -> bool:
        """Whether the gate is open."""
        return self.old is None or self._objection is None

    @property
    def is_undecided(self) -> bool:
        """Whether the pairs are too few to tell which model is better on them."""
        if self.n_held_out < self.fewest:
            return True
        return self.high is not None and self.high > 0 and not self.is_significant(self.alpha)

    @property
    def learned_from(self) -> str:
        """What there was to learn from, and what was made of it, in words."""
        sources = [counted(self.n_pictures, "picture with captions or labels", "pictures with captions or labels")]
        if self.n_more_images:
            sources.append(counted(self.n_more_images, "picture without", "pictures without"))
        if self.n_more_texts:
            sources.append(counted(self.n_more_texts, "text without a picture", "texts without a picture"))
        told = ", ".join(sources)
        return f"{told}: {self.learned}" if self.learned else told

    @property
    def reason(self) -> str:
        """Why the gate is open or shut, in words."""
        if self.old is None:
            return "there is nothing to compare with"
        kept = "" if self.rest_low is None else ", and nothing else is lost"
        return self._objection or f"it is better on held-out pictures by more than luck{kept}"

    @property
    def advice(self) -> str:
        """What would help where the gate is shut, empty where it is open."""
        if self.passes:
            return ""
        if self.next_pictures:
            return f"describe these next, whose captions would tell most: {', '.join(self.next_pictures)}"
        if self.n_held_out < self.fewest:
            return f"describe at least {counted(self.fewest - self.n_held_out, 'more picture')}"
        if self.is_undecided:
            return "more pictures with captions would tell skill from luck"
        if not self.is_better:
            return "captions that say what tells the pictures apart, and more of them, would help"
        return "more captions, and of other things as well, would help"

    @property
    def _objection(self) -> str | None:
        """The first thing that the gate asks for and that is not given."""
        if self.n_held_out < self.fewest:
            verb = "has" if self.n_held_out == 1 else "have"
            few = f"only {counted(self.n_held_out, 'picture')} {verb} captions or labels"
            return f"{few}, and {self.fewest} are needed to tell skill from luck"
        luck = "" if self.p_value is None else f"p = {self.p_value:.3f}, and below {self.alpha:g} is asked for"
        if self.low is not None and self.is_undecided:
            between = f"MAP on held-out pictures changes by {self.low:+.3f} to {self.high:+.3f}, 95 % sure"
            return f"not enough to tell: {between} ({luck})"
        if not self.is_better:
            return "it is not better on held-out pictures"
        if not self.is_significant(self.alpha):
            return f"it is better on held-out pictures, but that may be luck ({luck})"
        if self.rest_low is not None and self.rest_low < -self.margin:
            lost = f"MAP {self.rest_old:.2f} → {self.rest_new:.2f} on {self.n_rest} other photographs"
            return (
                "it is better on held-out pictures, but may forget too much of what the one before could do "
                f"({lost}, 95 % sure only that it loses at most {-self.rest_low:.2f}; {self.margin:g} is allowed)"
            )
        if self._answers_lost > self.margin:
            answered = f"{self.answered_old:.0%} → {self.answered_new:.0%}"
            return f"to refuse nonsense as before, it would answer fewer of your own captions and words ({answered})"
        return None

    @property
    def _answers_lost(self) -> float:
        return 0.0 if self.answered_old is None or self.answered_new is None else self.answered_old - self.answered_new

    def __str__(self) -> str:
        start = f"MAP {self.new:.3f} on {self.n_held_out} held-out pictures"
        if self.old is None or self.p_value is None:
            return f"{start}, chance {self.chance:.3f}"
        word = "better" if self.is_better else "worse"
        difference = f"{word} by {abs(self.new - self.old):.3f} (p = {self.p_value:.3f})"
        return f"{start}, {self.baseline} {self.old:.3f}: {difference}, chance {self.chance:.3f}"
