"""PyTorch, which only training needs: its import, one side's network while it is trained, and Adam on its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models.base import check_choice
from diptych.models.neural._layers import Layers, initial_layers

Device = Literal["auto", "cpu", "cuda"]


def torch_package(name: str = "torch") -> Any:
    """Return PyTorch, or say how to install it.

    >>> from diptych.models.neural._torch import torch_package
    >>> torch_package("no_such_module")
    Traceback (most recent call last):
    diptych.errors.MissingPackageError: training a network needs a package that is not installed: \
pip install 'diptych[deep]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError("training a network", "'diptych[deep]'") from None


def choose_device(device: Device) -> str:
    """Return where to train: ``auto`` is the graphics card where PyTorch finds one, else the processor."""
    check_choice("device", device, ("auto", "cpu", "cuda"))
    if device == "cpu":
        return "cpu"
    found = bool(torch_package().cuda.is_available())
    if device == "cuda" and not found:
        raise InvalidInputError("device is 'cuda', but PyTorch finds no graphics card; use 'auto' or 'cpu'")
    return "cuda" if found else "cpu"


_NORM_EPSILON, _MOMENTUM = 1e-5, 0.1


class Tower:
    """Dense layers with rectified units between them, on PyTorch.

    With ``batch_norm`` hidden values are brought to the mean and variance that the network learns for them (Ioffe and
    Szegedy, "Batch normalization", ICML 2015): by the statistics of the batch in training, by running ones otherwise.

    Start and dropout come from ``rng``, never from PyTorch's global generator, so that a fit is repeatable and leaves
    no trace.

    >>> import numpy as np
    >>> from diptych.models.neural._torch import Tower
    >>> tower = Tower((4, 8, 3), dropout=0.5, rng=np.random.default_rng(0), device="cpu")
    >>> tuple(tower.outputs(np.ones((2, 4), dtype=np.float32)).shape)
    (2, 3)
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        dropout: float,
        rng: np.random.Generator,
        device: str,
        batch_norm: bool = False,
    ) -> None:
        self._torch = torch_package()
        self._dropout = dropout
        self._device = device
        self._noise = self._torch.Generator(device).manual_seed(int(rng.integers(2**31)))
        self._dense = [self.tensor(layer).requires_grad_() for layer in initial_layers(sizes, rng)]
        hidden = sizes[1:-1] if batch_norm else ()
        ones, zeros = ([make(size, dtype=np.float32) for size in hidden] for make in (np.ones, np.zeros))
        self._scales = [self.tensor(values.copy()).requires_grad_() for values in ones]
        self._shifts = [self.tensor(values.copy()).requires_grad_() for values in zeros]
        self._variances = [self.tensor(values) for values in ones]
        self._means = [self.tensor(values) for values in zeros]
        self.parameters = [*self._dense, *self._scales, *self._shifts]

    def tensor(self, values: np.ndarray[Any, Any]) -> Any:
        """Return float32 ``values`` where the network is."""
        return self._torch.from_numpy(values).to(self._device)

    def outputs(self, rows: np.ndarray[Any, Any], *, training: bool = False) -> Any:
        """Return the last layer's values; with ``training``, hidden units are dropped at random."""
        values = self.tensor(rows) @ self._dense[0] + self._dense[1]
        for number, (weights, intercepts) in enumerate(zip(self._dense[2::2], self._dense[3::2], strict=True)):
            if self._scales:
                values = self._normalized(values, number, training=training)
            values = values.relu()
            if training and self._dropout:
                values = self._dropped(values)
            values = values @ weights + intercepts
        return values

    def layers(self) -> Layers:
        """Return the layers as NumPy arrays; normalisation by running statistics becomes part of the dense layers."""
        layers = [_copied(tensor) for tensor in self._dense]
        for number, scale in enumerate(self._scales):
            factor = _copied(scale) / np.sqrt(_copied(self._variances[number]) + np.float32(_NORM_EPSILON))
            weights, intercepts = layers[2 * number : 2 * number + 2]
            layers[2 * number] = weights * factor
            layers[2 * number + 1] = (intercepts - _copied(self._means[number])) * factor + _copied(
                self._shifts[number]
            )
        return layers

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of everything that training changes, by name."""
        named = {name: _copied(tensor) for name, tensor in self._tensors().items()}
        return {**named, "noise": self._noise.get_state().numpy().copy()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go back to what `state` returned."""
        with self._torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(self._torch.from_numpy(np.array(state[name])))
        self._noise.set_state(self._torch.from_numpy(np.array(state["noise"])))

    def _tensors(self) -> dict[str, Any]:
        parts = {"parameter": self.parameters, "mean": self._means, "variance": self._variances}
        return {f"{part}{number}": tensor for part, tensors in parts.items() for number, tensor in enumerate(tensors)}

    def _normalized(self, values: Any, number: int, *, training: bool) -> Any:
        mean, variance = self._means[number], self._variances[number]
        if training:
            variance, mean = self._torch.var_mean(values, dim=0, correction=0)
            with self._torch.no_grad():
                self._means[number].lerp_(mean, _MOMENTUM)
                self._variances[number].lerp_(variance, _MOMENTUM)
        return (values - mean) / (variance + _NORM_EPSILON).sqrt() * self._scales[number] + self._shifts[number]

    def _dropped(self, values: Any) -> Any:
        drawn = self._torch.rand(values.shape, generator=self._noise, device=self._device)
        return values * (drawn >= self._dropout) / (1 - self._dropout)


def _copied(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy().copy()


_FIRST, _SECOND, _ADAM_EPSILON = 0.9, 0.999, 1e-8


class TorchAdam:
    """Moves tensors along the gradient of a loss (Kingma and Ba, "Adam", ICLR 2015), weights drawn towards zero.

    Written out because PyTorch's own optimisers load its compiler, which takes longer than training a small model.

    >>> from diptych.models.neural._torch import TorchAdam
    >>> from diptych.models.neural._torch import torch_package
    >>> place = torch_package().tensor([3.0], requires_grad=True)
    >>> descent = TorchAdam([place], weight_decay=0.0)
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
                parameter.addcdiv_(mean, (square / second).sqrt_().add_(_ADAM_EPSILON), value=-rate / first)

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
