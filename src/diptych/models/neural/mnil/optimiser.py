"""Steps along gradients, with two learning rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from diptych.models.neural.torch_package import torch_package

OptimiserName = Literal["adam", "sgd"]
OPTIMISERS: tuple[OptimiserName, ...] = ("adam", "sgd")

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8
_LARGEST = 8.0


class Optimiser:
    """Stochastic gradient descent with momentum, or Adam (Kingma and Ba, ICLR 2015), over groups of tensors.

    Entries of gradients are clamped to ±8, as in the code the authors of the method released. Weights (not
    intercepts) decay by a share of the step. Written out because PyTorch's own optimisers load its compiler, which
    takes longer than training a small model; what it remembers are plain tensors, so that a checkpoint is too.

    >>> from diptych.models.neural.mnil.optimiser import Optimiser
    >>> from diptych.models.neural.torch_package import torch_package
    >>> place = torch_package().tensor([3.0], requires_grad=True)
    >>> optimiser = Optimiser("sgd", {"all": [place]}, momentum=0.5, weight_decay=0.0)
    >>> for _ in range(50):
    ...     ((place - 1) ** 2).sum().backward()
    ...     optimiser.step({"all": 0.1})
    >>> round(place.item(), 2)
    1.0
    """

    def __init__(
        self, name: OptimiserName, groups: Mapping[str, Sequence[Any]], *, momentum: float, weight_decay: float
    ) -> None:
        self._torch = torch_package()
        self._name = name
        self._groups = {group: list(tensors) for group, tensors in groups.items() if tensors}
        self._momentum = momentum
        self._weight_decay = weight_decay
        self.n_steps = 0
        kinds = ("first", "second") if name == "adam" else ("first",)
        self._moments = {
            (group, kind): [self._torch.zeros_like(tensor) for tensor in tensors]
            for group, tensors in self._groups.items()
            for kind in kinds
        }

    @property
    def tensors(self) -> list[Any]:
        """Everything that is moved."""
        return [tensor for tensors in self._groups.values() for tensor in tensors]

    def memory(self) -> dict[str, Any]:
        """Return what it remembers, by name; with `n_steps` it is all that a continuation needs."""
        return {
            f"{group}.{kind}.{number}": tensor
            for (group, kind), tensors in self._moments.items()
            for number, tensor in enumerate(tensors)
        }

    def step(self, rates: Mapping[str, float]) -> None:
        """Move every tensor along its gradient at its group's rate, and forget the gradients."""
        self.n_steps += 1
        with self._torch.no_grad():
            for group, tensors in self._groups.items():
                slopes = [tensor.grad for tensor in tensors]
                self._torch._foreach_clamp_min_(slopes, -_LARGEST)
                self._torch._foreach_clamp_max_(slopes, _LARGEST)
                self._decay([tensor for tensor in tensors if tensor.ndim > 1], rates[group])
                move = self._move_adam if self._name == "adam" else self._move_along
                move(group, tensors, slopes, rates[group])
        for tensor in self.tensors:
            tensor.grad = None

    def _decay(self, weights: list[Any], rate: float) -> None:
        if self._weight_decay and weights:
            self._torch._foreach_mul_(weights, 1 - rate * self._weight_decay)

    def _move_along(self, group: str, tensors: list[Any], slopes: list[Any], rate: float) -> None:
        speeds = self._moments[group, "first"]
        self._torch._foreach_mul_(speeds, self._momentum)
        self._torch._foreach_add_(speeds, slopes)
        self._torch._foreach_add_(tensors, speeds, alpha=-rate)

    def _move_adam(self, group: str, tensors: list[Any], slopes: list[Any], rate: float) -> None:
        means, squares = self._moments[group, "first"], self._moments[group, "second"]
        self._torch._foreach_lerp_(means, slopes, 1 - _FIRST)
        self._torch._foreach_mul_(squares, _SECOND)
        self._torch._foreach_addcmul_(squares, slopes, slopes, 1 - _SECOND)
        sizes = self._torch._foreach_div(squares, 1 - _SECOND**self.n_steps)
        self._torch._foreach_sqrt_(sizes)
        self._torch._foreach_add_(sizes, _EPSILON)
        self._torch._foreach_addcdiv_(tensors, means, sizes, -rate / (1 - _FIRST**self.n_steps))
