"""What a user deploys: two encoders and a model, from file or words to a point of the space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np

import diptych.retriever.model_selection as selection
from diptych.arrays import AnyArray, FloatArray
from diptych.data import Pairs
from diptych.data.item_sequences import is_features
from diptych.encoders import (
    EfficientNetLite,
    Encoder,
    ImageNetLabels,
    JointImageEncoder,
    JointTextEncoder,
    MultilingualSentences,
    SentenceEncoder,
    find_joint_model,
    imagenet_labels,
    open_joint_folder,
)
from diptych.encoders.feature_cache import Progress
from diptych.errors import InvalidInputError, MissingPackageError, ModelFileError
from diptych.estimators import clone
from diptych.models import ConSE, CrossModalModel, QueryBankNormalized, SharedSpace
from diptych.models.files import KnownClasses, read_model, write_model
from diptych.models.item_model import ItemModel
from diptych.retriever.adapted_model import AdaptedModel
from diptych.retriever.base import RetrieverBase
from diptych.retriever.calibration import Calibration
from diptych.retriever.comparison import Comparison
from diptych.retriever.held_out_pairs import UnpairedItems, held_out_parts, telling_rows
from diptych.retriever.ready_made import joint_calibration, shipped_folder
from diptych.retriever.tower_encoders import ImageTower, tower_parts

Epochs = Callable[[Any], None]
_FEWEST_PICTURES = 10
N_NEXT_PICTURES = 12


@dataclass(kw_only=True, eq=False, repr=False)
class Retriever(RetrieverBase):
    """An image encoder, a text encoder and a model in one: search pictures with words and words with pictures.

    `default` gives one that needs no training, `conse` one that never saw a picture with a caption, `joint` one from a
    local CLIP or SigLIP folder, and `from_model` one of networks that read pixels and words. `fit` learns a model from
    captions or labels of one's own and keeps it only if it is better than what was there. Items are paths of pictures,
    picture arrays, and strings; features are cached by content, so that a picture is encoded once.

    Parameters
    ----------
    image_encoder, text_encoder : Encoder or None
        None takes those of the default retriever.
    model : CrossModalModel or None
        What `fit` learns; None lets it choose among a few by a hold-out of the training part. A model of pictures and
        strings themselves, such as `MNiL`, takes the place of the encoders, too.
    name : str
        What people call it.
    cache : bool or path
        Where features are kept; True is the user's cache folder, False keeps none.

    Attributes
    ----------
    image_encoder_, text_encoder_, model_, calibration_ :
        The fitted parts.
    comparison_ : Comparison
        After `fit`: the held-out quality of the new model and of the one it had to beat.

    Examples
    --------
    >>> from diptych import Retriever
    >>> from diptych.data import load_dataset
    >>> from diptych.encoders import ColourEdgeHistograms, TfidfTopics
    >>> from diptych.models import CCA
    >>> pairs = load_dataset("scenes", n_train=120, n_test=20, size=32).train
    >>> parts = {"image_encoder": ColourEdgeHistograms(size=32), "text_encoder": TfidfTopics()}
    >>> retriever = Retriever(model=CCA(n_components=8), cache=False, **parts).fit(pairs, baseline=None)
    >>> retriever.similarity(pairs.images[:2], ["a red ball", "a green house"]).shape
    (2, 2)
    """

    image_encoder: Encoder | None = None
    text_encoder: Encoder | None = None
    model: CrossModalModel | None = None
    name: str = "custom"
    cache: bool | str | PathLike[str] = True

    def fit(
        self,
        pairs: Pairs,
        *,
        unpaired: UnpairedItems | None = None,
        baseline: Retriever | Literal["auto"] | None = "auto",
        held_out: float = 0.2,
        seed: int = 0,
        force: bool = False,
        progress: Progress | None = None,
        epochs: Epochs | None = None,
    ) -> Self:
        """Learn from pictures and their captions or labels, and keep the result only if it passes the gate.

        Models learned from the other pictures are tried on a share ``held_out`` of them, or where these are few on
        every fold of that size, beside the ``baseline``: what this retriever already is when fitted, the default
        retriever otherwise; one learned from one's own pairs is learned again from the same others. If the new one is
        better by more than luck and nothing else is lost, it is learned again from all pairs; if not, this retriever
        becomes the baseline, unless ``force``: see `Comparison`. Without a model it stands beside what the baseline
        knows, as far as cross-validation on the pairs it learns from says; ``unpaired`` are pictures without texts and
        texts without pictures to learn from as well, and held-out texts have to find their own pictures among these.
        ``progress`` is told how many items have been encoded, ``epochs`` gets the record of each epoch.
        """
        from diptych.retriever.held_out_trial import HeldOutTrial, with_distinguishing_labels

        if pairs.n_images < _FEWEST_PICTURES:
            raise InvalidInputError(f"learning needs at least {_FEWEST_PICTURES} pictures, got {pairs.n_images}")
        pairs = with_distinguishing_labels(pairs)
        rival = self._rival(baseline, pairs)
        unpaired = unpaired or UnpairedItems()
        learn = partial(self._learned, beside=rival, unpaired=unpaired, progress=progress, epochs=epochs)
        trial = HeldOutTrial(pairs, rival, unpaired)
        for number, (train, test) in enumerate(held_out_parts(pairs, held_out, seed, once=rival is None)):
            new = learn(train, f"trial-{number}" if number else "trial")
            judged = None if rival is None else _not_having_seen(rival, train, f"rival-{number}", unpaired)
            trial.add(new, judged, test, new.featured(test, progress=progress))
        comparison = trial.comparison()
        comparison.n_pictures = pairs.n_images
        if self.model is None:
            comparison.set_params(n_more_images=len(unpaired.images), n_more_texts=len(unpaired.texts))
        if rival is not None and not comparison.passes and not force:
            if comparison.is_undecided and len(unpaired.images) and not is_features(unpaired.images):
                described, others = np.asarray(rival.featured(pairs).images), unpaired.featured(rival)[0]
                rows = telling_rows(described, others, N_NEXT_PICTURES)
                comparison.set_params(next_pictures=[str(unpaired.images[row]) for row in rows])
            return self._take_parts_of(rival, comparison.set_params(replaced=False))
        winner = learn(pairs, "whole")
        winner.calibration_ = trial.calibration()
        if isinstance(winner.model_, AdaptedModel):
            comparison.set_params(learned=winner.model_.description)
        return self._take_parts_of(winner, comparison.set_params(forced=not comparison.passes))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write everything to ``folder`` as ``model.json`` and ``arrays.safetensors``, whole or not at all.

        Pretrained weights stay in their packages; the file holds their digests.
        """
        portable = copy(self._require("model_"))
        # Where features are kept is a matter of this machine.
        portable.cache = True
        write_model(portable, folder)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Read a retriever from ``folder``; nothing in it is executed.

        A folder with a model of pictures and strings, such as `MNiL`, gives the retriever that `from_model` makes.
        """
        loaded = read_model(folder, KnownClasses(Retriever, Encoder, CrossModalModel, Calibration, Comparison))
        if isinstance(loaded, ItemModel):
            return cls.from_model(loaded, name=Path(folder).resolve().name)
        if not isinstance(loaded, cls):
            raise ModelFileError(f"{folder} holds a {type(loaded).__name__}, not a retriever; use load_model")
        return loaded

    @classmethod
    def default(cls) -> Retriever:
        """Return a retriever that needs no training: a local joint model if there is one, else the shipped projection.

        A folder with a CLIP or SigLIP model takes precedence when the environment variable ``DIPTYCH_JOINT_MODEL``
        names it.
        """
        folder = find_joint_model()
        return Retriever.ready_made("default") if folder is None else Retriever.joint(folder)

    @classmethod
    def ready_made(cls, name: str) -> Retriever:
        """Return a retriever of the package, whatever joint models there are.

        ``default`` has one image network; ``strong`` finds more and takes up to three times as long for each picture.
        The model card has their numbers.
        """
        retriever = Retriever.load(shipped_folder(name))
        # Found now, not in the middle of a search: a missing package is an error that names the command.
        _ = retriever.fingerprint
        return retriever

    @classmethod
    def conse(cls) -> Retriever:
        """Return a retriever made without any picture-caption pair: the ten likeliest ImageNet labels as words.

        The vector of a label is that of its names in one line. The probabilities were learned from 1,000 photographs
        with captions. Save it, and ``diptych index --retriever FOLDER`` takes it.
        """
        images, sentences = ImageNetLabels(), SentenceEncoder()
        made = Retriever(image_encoder=images, text_encoder=sentences, name="conse")
        made.image_encoder_, made.text_encoder_ = images, sentences
        labels = made.text_features([", ".join(label.lemmas) for label in imagenet_labels()])
        # A picture that shows nothing but label k stands where the words of label k stand.
        made.model_ = ConSE(n_labels=10).fit(np.eye(len(labels), dtype=np.float32), labels)
        made.calibration_ = Calibration.assumed(10.9, [-6.1, -6.1, -8.9, -7.2])
        return made

    @classmethod
    def joint(cls, folder: str | PathLike[str]) -> Retriever:
        """Return a retriever on a local joint model such as CLIP or SigLIP; nothing is fetched."""
        place = str(Path(folder).expanduser().absolute())
        opened = open_joint_folder(place)
        images, texts = JointImageEncoder(folder=place), JointTextEncoder(folder=place)
        made = Retriever(image_encoder=images, text_encoder=texts, name=Path(folder).name)
        made.image_encoder_, made.text_encoder_ = images, texts
        point = np.eye(1, texts.transform(["a photo"]).shape[1])
        made.model_ = SharedSpace().fit(point, point)
        made.calibration_ = joint_calibration(opened.logit_scale, opened.logit_bias)
        return made

    @classmethod
    def from_model(
        cls,
        model: CrossModalModel,
        *,
        held_out: Pairs | None = None,
        image_encoder: Encoder | None = None,
        name: str = "custom",
        cache: bool | str | PathLike[str] = True,
    ) -> Self:
        """Return a retriever on a fitted model of pictures and strings themselves, such as `MNiL`.

        Each side of the model becomes an encoder (`ImageTower`, `TextTower`) that runs without PyTorch. ``held_out``
        are pairs that the model has not seen, from which probabilities are calibrated; without any, a score of a half
        is as likely right as wrong. ``image_encoder`` made the features for a model that takes features.
        """
        if not isinstance(model, ItemModel):
            raise InvalidInputError(
                f"from_model takes a fitted model of pictures and strings themselves, such as MNiL, not "
                f"{type(model).__name__}; methods of features: Retriever(model=..., image_encoder=..., "
                "text_encoder=...).fit(pairs)"
            )
        made = cls(name=name, cache=cache)
        made.image_encoder_, made.text_encoder_, made.model_ = tower_parts(model, image_encoder)
        # A score of a half is as likely right as wrong.
        made.calibration_ = Calibration.assumed(10.0, -5.0) if held_out is None else made.calibrated(held_out)
        return made

    def familiarity(self, texts: AnyArray) -> FloatArray | None:
        """Return what the bank of the model knows of texts, or that of the model which was there before it."""
        model = self._require("model_").model_
        if not isinstance(model, AdaptedModel) or not isinstance(model.kept_, QueryBankNormalized) or model.is_centred:
            return super().familiarity(texts)
        # Vectors of the one before come first. What it corrects scores by is not asked for.
        vectors = texts[:, : model.kept_.text_bank_.shape[1]] / np.sqrt(model.factors_[0])
        return model.kept_.familiarity(np.pad(vectors, ((0, 0), (0, 2))))

    @property
    def _recipe(self) -> CrossModalModel:
        """What would have to be learned again, from other pairs, to get a retriever of this kind."""
        tower = self.image_encoder_
        return tower.model if isinstance(tower, ImageTower) and isinstance(self.model_, SharedSpace) else self.model_

    def _learned(
        self,
        pairs: Pairs,
        part: str,
        model: CrossModalModel | None = None,
        *,
        beside: Retriever | None = None,
        unpaired: UnpairedItems | None = None,
        progress: Progress | None = None,
        epochs: Epochs | None = None,
    ) -> Retriever:
        unfitted = self.model if model is None else model
        if isinstance(unfitted, ItemModel):
            return self._learned_towers(pairs, part, unfitted, progress, epochs)
        new: Retriever = clone(self)
        new.image_encoder_ = _fitted_encoder(self._encoder("image_encoder"), pairs.images)
        new.text_encoder_ = _fitted_encoder(self._encoder("text_encoder"), pairs.texts)
        features = new.featured(pairs, progress=progress)
        if unfitted is not None:
            with selection.separate_checkpoint(unfitted, part) as recipe:
                new.model_ = recipe.fit(*features.aligned())
            return new
        rows = (unpaired or UnpairedItems()).featured(new)
        if beside is not None and selection.can_adapt(beside, new):
            new.model_ = selection.adapted(selection.known_before(beside), features, rows)
        else:
            new.model_ = selection.chosen_model(features, rows)
        return new

    def _learned_towers(
        self, pairs: Pairs, part: str, model: ItemModel, progress: Progress | None, epochs: Epochs | None
    ) -> Retriever:
        if pairs.has_image_features or pairs.has_text_features:
            raise InvalidInputError(
                f"{type(model).__name__} learns from pictures and strings, not from features of them"
            )
        new: Retriever = clone(self)
        encoder = None
        if not model.takes_pictures:
            encoder = _fitted_encoder(self._encoder("image_encoder"), pairs.images)
            pairs = pairs.with_features(images=self._features(encoder, cast(Sequence[Any], pairs.images), progress))
        with selection.separate_checkpoint(model, part) as recipe:
            fitted = recipe.fit(*pairs.aligned(), progress=epochs)
        new.image_encoder_, new.text_encoder_, new.model_ = tower_parts(fitted, encoder)
        return new

    def _take_parts_of(self, other: Retriever, comparison: Comparison) -> Self:
        for part in ("image_encoder_", "text_encoder_", "model_", "calibration_"):
            setattr(self, part, getattr(other, part))
        self.comparison_ = comparison
        return self

    def _encoder(self, name: str) -> Encoder:
        given: Encoder | None = getattr(self, name)
        if given is not None:
            return given
        if name == "text_encoder":
            return MultilingualSentences(english="minilm-captions")
        return EfficientNetLite(network="lite2-captions")

    def _rival(self, baseline: Retriever | Literal["auto"] | None, pairs: Pairs) -> Retriever | None:
        if baseline != "auto":
            return baseline
        if hasattr(self, "model_"):
            return copy(self)
        if pairs.has_image_features or pairs.has_text_features:
            # Features of another encoder mean nothing to the default retriever.
            return None
        try:
            return Retriever.default()
        except MissingPackageError:
            return None


def _fitted_encoder(encoder: Encoder, items: Any) -> Encoder:
    # A side that already is features needs no fit, and an encoder that learns nothing must not read every picture.
    new: Encoder = clone(encoder)
    return new.fit(items) if encoder.learns and not is_features(items) else new


def _not_having_seen(rival: Retriever, train: Pairs, part: str, unpaired: UnpairedItems) -> Retriever:
    """Return a retriever, or its like learned from these pairs alone where it was learned from one's own."""
    if not (hasattr(rival, "comparison_") and rival.comparison_.replaced):
        return rival
    if isinstance(rival.model_, AdaptedModel):
        return rival._learned(train, part, beside=rival, unpaired=unpaired)
    return rival._learned(train, part, rival._recipe)
