"""The text side while it is trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from diptych.arrays import AnyArray, FloatArray
from diptych.models.neural.torch_package import torch_package

N_LAYERS = 2
_SMALLEST = 1e-12


class WordTower:
    """Word vectors, two layers of long short-term memory, and the mean over time, on PyTorch.

    Word vectors start as standard normal numbers unless ``words`` gives them, weights uniform in ±1/√width, and forget
    gates open. Without ``train_words`` the vectors stay as they are. ``unit_steps`` scales what the memory gives for
    each word to unit length before the mean.

    >>> import numpy as np
    >>> from diptych.models.neural.mnil.word_tower import WordTower
    >>> tower = WordTower(10, 4, 6, dropout=0.0, unit_steps=False, rng=np.random.default_rng(0), device="cpu")
    >>> codes = tower.tensor(np.array([[2, 3, 0], [4, 0, 0]]))
    >>> tuple(tower.features(codes, tower.tensor(np.array([2, 1]))).shape)
    (2, 6)
    """

    def __init__(
        self,
        n_words: int,
        word_size: int,
        hidden_size: int,
        *,
        dropout: float,
        unit_steps: bool,
        rng: np.random.Generator,
        device: str,
        words: FloatArray | None = None,
        train_words: bool = True,
    ) -> None:
        self._torch = torch_package()
        self._device = device
        self._unit_steps = unit_steps
        self.width = hidden_size
        # Made without numbers at first, because PyTorch would draw them from its global generator.
        memory = self._torch.nn.LSTM(word_size, hidden_size, N_LAYERS, batch_first=True, dropout=dropout, device="meta")
        self._memory = memory.to_empty(device=device)
        if words is None:
            words = rng.standard_normal((n_words, word_size), dtype=np.float32)
        self._words = self.tensor(words).requires_grad_(train_words)
        vectors = {"words": self._words}
        self.parameters = {**(vectors if train_words else {}), **dict(self._memory.named_parameters())}
        self.buffers: dict[str, Any] = {} if train_words else vectors
        self._begin(rng)

    def tensor(self, values: AnyArray) -> Any:
        """Return ``values`` where the network is."""
        return self._torch.from_numpy(values).to(self._device)

    def features(self, codes: Any, lengths: Any, *, training: bool = False) -> Any:
        """Return the mean over the words of each text; ``codes`` beyond a text's length do not count."""
        self._memory.train(training)
        steps, _ = self._memory(self._torch.nn.functional.embedding(codes, self._words))
        if self._unit_steps:
            steps = self._torch.nn.functional.normalize(steps, dim=2, eps=_SMALLEST)
        counted = self._torch.arange(codes.shape[1], device=codes.device) < lengths[:, None]
        return (steps * counted[:, :, None]).sum(dim=1) / lengths[:, None]

    def arrays(self) -> dict[str, AnyArray]:
        """Return word vectors and memory under PyTorch's names; gates come as input, forget, cell, output."""
        learned = {"words": self._words, **self.parameters}
        return {name: parameter.detach().cpu().numpy().copy() for name, parameter in learned.items()}

    def _begin(self, rng: np.random.Generator) -> None:
        for name, parameter in self._memory.named_parameters():
            bound = 1 / np.sqrt(self.width)
            values = rng.uniform(-bound, bound, size=tuple(parameter.shape)).astype(np.float32)
            if name.startswith("bias"):
                values[:] = 0
                # The two biases are added; one of them opens the forget gates.
                values[self.width : 2 * self.width] = 1.0 if name.startswith("bias_ih") else 0.0
            parameter.data.copy_(self.tensor(values))
