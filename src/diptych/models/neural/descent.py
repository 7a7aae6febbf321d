"""Adam on PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diptych.arrays import AnyArray
from diptych.models.neural.torch_package import torch_package

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


class Descent:
    """Moves tensors along the gradient of a loss (Kingma and Ba, "Adam", ICLR 2015), weights drawn towards zero.

    Written out because PyTorch's own optimisers load its compiler, which takes longer than training a small model.

    >>> from diptych.models.neural.descent import Descent
    >>> from diptych.models.neural.torch_package import torch_package
    >>> place = torch_package().tensor([3.0], requires_grad=True)
    >>> descent = Descent([place], weight_decay=0.0)
    >>> for _ in range(200):
    ...     descent.step(((place - 1) ** 2).sum(), rate=0.1)
    >>> round(place.item(), 1)
    1.0
    """

    def __init__(self, parameters: Sequence[Any], weight_decay: float) -> None:
        self._torch = torch_package()
        self._parameters = parameters
        self._weight_decay = weight_decay
        self._done = 0
        self._means = [self._torch.zeros_like(parameter) for parameter in parameters]
        self._squares = [self._torch.zeros_like(parameter) for parameter in parameters]

    def step(self, loss: Any, rate: float) -> None:
        """Move every tensor once; ``rate`` is about how far an entry moves."""
        gradients = self._torch.autograd.grad(loss, self._parameters)
        self._done += 1
        first, second = 1 - _FIRST**self._done, 1 - _SECOND**self._done
        with self._torch.no_grad():
            for parameter, gradient, mean, square in zip(
                self._parameters, gradients, self._means, self._squares, strict=True
            ):
                mean.lerp_(gradient, 1 - _FIRST)
                square.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
                # Apart from the gradient, as Loshchilov and Hutter (ICLR 2019) advise; intercepts are left free.
                if parameter.ndim > 1:
                    parameter.mul_(1 - rate * self._weight_decay)
                parameter.addcdiv_(mean, (square / second).sqrt_().add_(_EPSILON), value=-rate / first)

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of the steps done and of what is remembered of their gradients, by name."""
        named = {name: tensor.cpu().numpy().copy() for name, tensor in self._tensors().items()}
        return {**named, "done": np.array([self._done])}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go back to what `state` returned."""
        for name, tensor in self._tensors().items():
            tensor.copy_(self._torch.from_numpy(np.array(state[name])))
        self._done = int(state["done"][0])

    def _tensors(self) -> dict[str, Any]:
        parts = {"mean": self._means, "square": self._squares}
        return {f"{part}{number}": tensor for part, tensors in parts.items() for number, tensor in enumerate(tensors)}
