"""PyTorch, which only training needs: its import, one side's network while it is trained, and Adam on its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from diptych.arrays import AnyArray
from diptych.errors import InvalidInputError, MissingPackageError
from diptych.models.neural._layers import Activation, Layers, initial_layers

Device = Literal["auto", "cpu", "cuda"]

_NORM_EPSILON, _MOMENTUM = 1e-5, 0.1
_FIRST, _SECOND, _ADAM_EPSILON = 0.9, 0.999, 1e-8


def torch_package(name: str = "torch") -> Any:
    """Return PyTorch, or say how to install it.

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
    if device == "cpu":
        return "cpu"
    found = bool(torch_package().cuda.is_available())
    if device == "cuda" and not found:
        raise InvalidInputError("device is 'cuda', but PyTorch finds no graphics card; use 'auto' or 'cpu'")
    return "cuda" if found else "cpu"


class Tower:
    """Dense layers with rectified or tanh units between them, on PyTorch.

    With ``batch_norm`` hidden values are brought to the mean and variance that the network learns for them (Ioffe and
    Szegedy, "Batch normalization", ICML 2015): by the statistics of the batch in training, by running ones otherwise.
    What dropout draws depends on ``seed``, never on PyTorch's global generator.
    """

    def __init__(
        self,
        layers: Layers,
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
        seed: int = 0,
        device: str = "cpu",
        batch_norm: bool = False,
    ) -> None:
        self._torch = torch_package()
        self._activation = activation
        self._dropout = dropout
        self._device = device
        self._noise = self._torch.Generator(device).manual_seed(seed)
        self._dense = [self.tensor(layer).requires_grad_() for layer in layers]
        hidden = [len(intercepts) for intercepts in layers[1:-1:2]] if batch_norm else []
        ones, zeros = ([make(size, dtype=np.float32) for size in hidden] for make in (np.ones, np.zeros))
        self._scales = [self.tensor(values.copy()).requires_grad_() for values in ones]
        self._shifts = [self.tensor(values.copy()).requires_grad_() for values in zeros]
        self._variances = [self.tensor(values) for values in ones]
        self._means = [self.tensor(values) for values in zeros]
        self.parameters = [*self._dense, *self._scales, *self._shifts]

    @classmethod
    def drawn(cls, sizes: Sequence[int], rng: np.random.Generator, **options: Any) -> Tower:
        """Return a tower whose start and dropout come from ``rng``."""
        seed = int(rng.integers(2**31))
        return cls(initial_layers(sizes, rng), seed=seed, **options)

    def tensor(self, values: np.ndarray[Any, Any]) -> Any:
        """Return float32 ``values`` where the network is."""
        return self._torch.from_numpy(values).to(self._device)

    def outputs(self, rows: np.ndarray[Any, Any], *, training: bool = False) -> Any:
        """Return the last layer's values; with ``training``, hidden units are dropped at random."""
        values = self.tensor(rows) @ self._dense[0] + self._dense[1]
        for number, (weights, intercepts) in enumerate(zip(self._dense[2::2], self._dense[3::2], strict=True)):
            if self._scales:
                values = self._normalized(values, number, training=training)
            values = values.relu() if self._activation == "relu" else values.tanh()
            if training and self._dropout:
                values = self._dropped(values)
            values = values @ weights + intercepts
        return values

    def layers(self) -> Layers:
        """Return the layers as NumPy arrays; normalisation by running statistics becomes part of the dense layers."""
        layers = [copied(tensor) for tensor in self._dense]
        for number, statistics in enumerate(zip(self._scales, self._shifts, self._means, self._variances, strict=True)):
            scale, shift, mean, variance = (copied(tensor) for tensor in statistics)
            factor = scale / np.sqrt(variance + np.float32(_NORM_EPSILON))
            layers[2 * number] = layers[2 * number] * factor
            layers[2 * number + 1] = (layers[2 * number + 1] - mean) * factor + shift
        return layers

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of everything that training changes, by name."""
        return {**copied_by_name(self._tensors()), "noise": self._noise.get_state().numpy().copy()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go back to what `state` returned."""
        fill_by_name(self._tensors(), state)
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


def copied(tensor: Any) -> AnyArray:
    """Return a copy of a tensor as an array."""
    return np.asarray(tensor.detach().cpu().contiguous().numpy().copy())


def copied_by_name(tensors: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Return copies of tensors as arrays."""
    return {name: copied(tensor) for name, tensor in tensors.items()}


def fill_by_name(tensors: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Give tensors the numbers of the arrays of the same names."""
    torch = torch_package()
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(np.array(arrays[name])).reshape(tensor.shape))


class Descent:
    """Adam (Kingma and Ba, ICLR 2015), or with ``momentum`` stochastic gradient descent; weights decay towards zero.

    Written out because PyTorch's own optimisers import its compiler, which takes longer than training a small model.

    >>> place = torch_package().tensor([3.0], requires_grad=True)
    >>> descent = Descent([place], weight_decay=0.0)
    >>> for _ in range(200):
    ...     descent.step(((place - 1) ** 2).sum(), rate=0.1)
    >>> round(place.item(), 1)
    1.0
    """

    def __init__(self, tensors: Sequence[Any], weight_decay: float, *, momentum: float | None = None) -> None:
        self._torch = torch_package()
        self.tensors = list(tensors)
        self.n_steps = 0
        self._weight_decay = weight_decay
        self._momentum = momentum
        self._means = [self._torch.zeros_like(tensor) for tensor in tensors]
        self._squares = [self._torch.zeros_like(tensor) for tensor in tensors] if momentum is None else []

    def step(self, loss: Any, rate: float) -> None:
        """Move every tensor once; ``rate`` is about how far an entry moves."""
        self.move(self._torch.autograd.grad(loss, self.tensors), rate)

    def move(self, gradients: Sequence[Any], rate: float) -> None:
        """Move every tensor once, given its gradient."""
        self.n_steps += 1
        with self._torch.no_grad():
            # Apart from the gradient, as Loshchilov and Hutter (ICLR 2019) advise; intercepts are left free.
            for tensor in self.tensors if self._weight_decay else ():
                if tensor.ndim > 1:
                    tensor.mul_(1 - rate * self._weight_decay)
            if self._momentum is None:
                self._adam(gradients, rate)
            else:
                self._torch._foreach_mul_(self._means, self._momentum)
                self._torch._foreach_add_(self._means, gradients)
                self._torch._foreach_add_(self.tensors, self._means, alpha=-rate)

    def state(self) -> dict[str, AnyArray]:
        """Return a copy of the steps done and of what is remembered of their gradients, by name."""
        return {**copied_by_name(self._moments()), "done": np.array([self.n_steps])}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go back to what `state` returned."""
        fill_by_name(self._moments(), state)
        self.n_steps = int(state["done"][0])

    def _adam(self, gradients: Sequence[Any], rate: float) -> None:
        self._torch._foreach_lerp_(self._means, gradients, 1 - _FIRST)
        self._torch._foreach_mul_(self._squares, _SECOND)
        self._torch._foreach_addcmul_(self._squares, gradients, gradients, 1 - _SECOND)
        sizes = self._torch._foreach_div(self._squares, 1 - _SECOND**self.n_steps)
        self._torch._foreach_sqrt_(sizes)
        self._torch._foreach_add_(sizes, _ADAM_EPSILON)
        self._torch._foreach_addcdiv_(self.tensors, self._means, sizes, -rate / (1 - _FIRST**self.n_steps))

    def _moments(self) -> dict[str, Any]:
        moments = {"mean": self._means, "square": self._squares}
        return {f"{kind}{number}": tensor for kind, tensors in moments.items() for number, tensor in enumerate(tensors)}
