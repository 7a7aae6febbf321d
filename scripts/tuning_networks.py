"""The networks of `tune_networks.py` in PyTorch: image networks, MiniLM with thin changes, and the projections."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from diptych.arrays import AnyArray, FloatArray
from diptych.encoders.image.lite_network import BATCH_NORM_EPSILON, STRIDES, lite_network
from diptych.encoders.networks.onnx_graph import BatchNorm, fold_batch_norm
from diptych.encoders.text.sentence_encoder import MiniLM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
_LAYERS, _HEADS, _WIDTH = 6, 12, 384
# The share of the last block that is left out in training; earlier ones are left out less often.
LEFT_OUT = 0.1


class ImageNetwork(nn.Module):
    """An EfficientNet-Lite with its normalisation folded in; blocks are left out at random in training."""

    def __init__(self, name: str) -> None:
        super().__init__()
        network = lite_network(name)
        self.side, self.weights = network.side, network.weights()
        self.layers = _layers(network.repeats, self.weights)
        self.kernels, self.biases = nn.ParameterList(), nn.ParameterList()
        for layer, norm, *_ in self.layers:
            learned = BatchNorm(
                *(self.weights[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
            )
            scaled = self.weights[f"{layer}.weight"] * np.float64(1 / 128 if layer == "_conv_stem" else 1)
            kernel, bias = fold_batch_norm(scaled, learned, epsilon=BATCH_NORM_EPSILON)
            self.kernels.append(nn.Parameter(torch.from_numpy(kernel).contiguous(memory_format=torch.channels_last)))
            self.biases.append(nn.Parameter(torch.from_numpy(bias)))

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the pooled features of pixels from 0 to 255, (n, 3, side, side)."""
        values = (pixels - 127).contiguous(memory_format=torch.channels_last)
        start, blocks, n_blocks = values, 0, sum(residual for *_, residual in self.layers)
        for (layer, _, stride, linear, residual), kernel, bias in zip(
            self.layers, self.kernels, self.biases, strict=True
        ):
            if layer.endswith("_expand_conv") or layer == "_blocks.0._depthwise_conv":
                start = values
            values = _convolved(values, kernel, bias, stride)
            if not linear:
                values = functional.hardtanh(values, 0.0, 6.0, inplace=True)
            if residual:
                blocks += 1
                if self.training:
                    share = LEFT_OUT * blocks / n_blocks
                    values = values * ((torch.rand(len(values), 1, 1, 1, device=values.device) >= share) / (1 - share))
                values = values + start
        return values.float().mean((2, 3))

    def class_rows(self, features: Tensor) -> Tensor:
        """Return a picture of each ImageNet class: where its row of the classifier points, as far as pictures are."""
        rows = torch.from_numpy(np.asarray(self.weights["_fc.weight"], dtype=np.float32)).to(features.device)
        mean = features.mean(0)
        return mean + functional.normalize(rows - rows.mean(0), dim=1) * (features - mean).norm(dim=1).mean()


def _layers(repeats: tuple[int, ...], weights: Mapping[str, AnyArray]) -> list[tuple[str, str, int, bool, bool]]:
    """Return name, normalisation, stride, whether linear and whether added to the block's start, of each layer."""
    layers, block = [("_conv_stem", "_bn0", 2, False, False)], 0
    for stride, count in zip(STRIDES, repeats, strict=True):
        for repeat in range(count):
            prefix = f"_blocks.{block}."
            if f"{prefix}_expand_conv.weight" in weights:
                layers.append((f"{prefix}_expand_conv", f"{prefix}_bn0", 1, False, False))
            layers.append((f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride if repeat == 0 else 1, False, False))
            layers.append((f"{prefix}_project_conv", f"{prefix}_bn2", 1, True, repeat > 0))
            block += 1
    return [*layers, ("_conv_head", "_bn1", 1, False, False)]


def _convolved(values: Tensor, kernel: Tensor, bias: Tensor, stride: int) -> Tensor:
    side, groups = values.shape[-1], values.shape[1] // kernel.shape[1]
    padding = max(0, (-(-side // stride) - 1) * stride + kernel.shape[-1] - side)
    before = padding // 2
    if padding % 2:
        values, before = functional.pad(values, (before, before + 1, before, before + 1)), 0
    return functional.conv2d(values, kernel, bias, stride=stride, padding=before, groups=groups)


class SentenceNetwork(nn.Module):
    """MiniLM as it is packaged, and a thin change of each matrix of its layers, which alone is learned."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        weights = MiniLM()
        self.left, self.right = nn.ParameterDict(), nn.ParameterDict()
        for name in weights.names:
            if "position_ids" in name or "pooler" in name:
                continue
            array = weights[name]
            self.register_buffer(_key(name), torch.from_numpy(array))
            if "encoder.layer" in name and array.ndim == 2:
                rows, columns = array.shape
                self.left[_key(name)] = nn.Parameter(torch.zeros(rows, rank))
                self.right[_key(name)] = nn.Parameter(torch.randn(rank, columns) / math.sqrt(columns))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return one unit row per text; ``mask`` is true for its tokens."""
        values = self._of("embeddings.word_embeddings.weight")[tokens]
        values = values + self._of("embeddings.position_embeddings.weight")[: tokens.shape[1]]
        values = self._norm(values + self._of("embeddings.token_type_embeddings.weight")[0], "embeddings.LayerNorm")
        hidden = torch.where(mask, 0.0, -1e4)[:, None, None, :]
        for layer in range(_LAYERS):
            values = self._layer(values, hidden, f"encoder.layer.{layer}.")
        weights = mask[..., None].float()
        return functional.normalize((values.float() * weights).sum(1) / weights.sum(1), dim=1)

    def _layer(self, values: Tensor, hidden: Tensor, prefix: str) -> Tensor:
        query, key, value = (
            self._linear(values, f"{prefix}attention.self.{part}").view(*values.shape[:2], _HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=hidden.to(query.dtype))
        seen = self._linear(seen.transpose(1, 2).reshape(values.shape), f"{prefix}attention.output.dense")
        values = self._norm(values + seen, f"{prefix}attention.output.LayerNorm")
        inner = functional.gelu(self._linear(values, f"{prefix}intermediate.dense"))
        return self._norm(values + self._linear(inner, f"{prefix}output.dense"), f"{prefix}output.LayerNorm")

    def _linear(self, values: Tensor, name: str) -> Tensor:
        key = _key(f"{name}.weight")
        return functional.linear(
            values, getattr(self, key) + self.left[key] @ self.right[key], self._of(f"{name}.bias")
        )

    def _norm(self, values: Tensor, name: str) -> Tensor:
        return functional.layer_norm(values, (_WIDTH,), self._of(f"{name}.weight"), self._of(f"{name}.bias"), 1e-12)

    def _of(self, name: str) -> Tensor:
        buffer: Tensor = getattr(self, _key(name))
        return buffer

    def changes(self) -> dict[str, FloatArray]:
        """Return the thin matrices under the names of the weights that they change."""
        return {
            f"{key.replace('/', '.')}.{side}": parameter.detach().half().cpu().numpy()
            for side, parameters in (("left", self.left), ("right", self.right))
            for key, parameter in parameters.items()
        }


def _key(name: str) -> str:
    # Names of buffers have no dots.
    return name.replace(".", "/")


class Projections(nn.Module):
    """Linear projections of unit features, centred and of unit spread, into one space."""

    def __init__(self, networks: list[str], n_components: int) -> None:
        super().__init__()
        self.widths = dict.fromkeys(networks, 1280) | {"texts": 896}
        for name, width in self.widths.items():
            self.register_buffer(f"mean_{name}", torch.zeros(width))
            self.register_buffer(f"spread_{name}", torch.ones(1))
            fan_in = width * (len(networks) if name != "texts" else 1)
            self.register_parameter(
                f"matrix_{name}", nn.Parameter(torch.randn(width, n_components) / math.sqrt(fan_in))
            )

    @torch.no_grad()
    def centre(self, name: str, rows: Tensor) -> None:
        """Take mean and spread from the unit features of the training data."""
        getattr(self, f"mean_{name}").copy_(rows.mean(0))
        getattr(self, f"spread_{name}").copy_((rows - rows.mean(0)).square().mean().sqrt())

    def forward(self, name: str, rows: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the points of unit features, not scaled to unit length."""
        centred = (rows - getattr(self, f"mean_{name}")) / getattr(self, f"spread_{name}")
        return functional.dropout(centred, dropout, self.training) @ getattr(self, f"matrix_{name}")

    def arrays(self) -> dict[str, FloatArray]:
        """Return means and projections such that a point is (features − mean) @ projection."""
        found = {}
        for name in self.widths:
            found[f"mean_{name}"] = getattr(self, f"mean_{name}").cpu().numpy()
            matrix = getattr(self, f"matrix_{name}").detach() / getattr(self, f"spread_{name}")
            found[f"projection_{name}"] = matrix.cpu().numpy()
        return found
