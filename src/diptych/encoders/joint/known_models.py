"""Joint models that people have, where they come from and which of their files Diptych reads; nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from diptych.errors import InvalidInputError

ONNX_INSTEAD = (
    "export its towers to onnx/vision_model.onnx and onnx/text_model.onnx beside tokenizer.json and "
    "preprocessor_config.json, or take a model that `diptych doctor --files` lists"
)
"""What to do about a model whose weights cannot be read."""

_TRANSFORMERS = ("config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json")
_OPEN_CLIP = ("open_clip_config.json", "open_clip_model.safetensors", "tokenizer.json")
_ONNX = ("config.json", "onnx/text_model.onnx", "onnx/vision_model.onnx", "preprocessor_config.json", "tokenizer.json")
LAYOUT_FILES = {
    layout: tuple(sorted((*files, "tokenizer_config.json")))
    for layout, files in {"Transformers": _TRANSFORMERS, "OpenCLIP": _OPEN_CLIP, "ONNX": _ONNX}.items()
}
"""The files of each layout."""
_SOURCES = {
    "Transformers": (
        "openai/clip-vit-base-patch16 openai/clip-vit-base-patch32 openai/clip-vit-large-patch14 "
        "openai/clip-vit-large-patch14-336 google/siglip-base-patch16-224 google/siglip-base-patch16-256 "
        "google/siglip-base-patch16-384 google/siglip-base-patch16-512 google/siglip-large-patch16-256 "
        "google/siglip-large-patch16-384 google/siglip-so400m-patch14-224 google/siglip-so400m-patch14-384 "
        "google/siglip2-base-patch16-224 google/siglip2-base-patch16-256 google/siglip2-base-patch16-384 "
        "google/siglip2-base-patch16-512 google/siglip2-base-patch32-256 google/siglip2-large-patch16-256 "
        "google/siglip2-large-patch16-384 google/siglip2-large-patch16-512 google/siglip2-so400m-patch14-224 "
        "google/siglip2-so400m-patch14-384 google/siglip2-so400m-patch16-256 google/siglip2-so400m-patch16-384"
    ),
    "OpenCLIP": (
        "laion/CLIP-ViT-B-16-laion2B-s34B-b88K laion/CLIP-ViT-B-32-laion2B-s34B-b79K "
        "laion/CLIP-ViT-H-14-laion2B-s32B-b79K laion/CLIP-ViT-L-14-laion2B-s32B-b82K timm/ViT-B-16-SigLIP "
        "timm/ViT-B-16-SigLIP-256 timm/ViT-B-16-SigLIP-384 timm/ViT-L-16-SigLIP-256 timm/ViT-SO400M-14-SigLIP "
        "timm/ViT-B-16-SigLIP2 timm/ViT-B-16-SigLIP2-256 timm/ViT-B-32-SigLIP2-256 timm/ViT-L-16-SigLIP2-256 "
        "timm/ViT-SO400M-14-SigLIP2"
    ),
    "ONNX": (
        "Xenova/clip-vit-base-patch16 Xenova/clip-vit-base-patch32 Xenova/mobileclip_b Xenova/mobileclip_blt "
        "Xenova/mobileclip_s0 Xenova/mobileclip_s1 Xenova/mobileclip_s2 Xenova/siglip-base-patch16-224 "
        "onnx-community/siglip2-base-patch16-224-ONNX"
    ),
}


@dataclass(frozen=True)
class KnownModel:
    """A model by the name of its repository on the Hugging Face hub, and the files to take from there."""

    source: str
    layout: str

    @property
    def name(self) -> str:
        """The name without that of its owner, which also is a good one for the folder."""
        return self.source.rpartition("/")[2]

    @property
    def files(self) -> tuple[str, ...]:
        """The files to put into one folder, under the same names; ``onnx/`` is a folder within."""
        return LAYOUT_FILES[self.layout]

    @property
    def address(self) -> str:
        """Where a browser shows the files."""
        return f"https://huggingface.co/{self.source}/tree/main"


KNOWN_MODELS = tuple(KnownModel(source, layout) for layout, names in _SOURCES.items() for source in names.split())


def known_model(name: str) -> KnownModel:
    """Return a model by its name, with or without that of its owner, in any case.

    >>> known_model("siglip2-base-patch16-224").source
    'google/siglip2-base-patch16-224'
    """
    wanted = name.lower()
    for model in KNOWN_MODELS:
        if wanted in (model.source.lower(), model.name.lower()):
            return model
    advice = mobile_clip_advice(wanted)
    if advice:
        raise InvalidInputError(f"{name!r} is not read from its own files; {advice}")
    alike = get_close_matches(wanted, [model.name.lower() for model in KNOWN_MODELS], n=3, cutoff=0.4)
    near = [model.name for model in KNOWN_MODELS if model.name.lower() in alike]
    hint = f"; alike: {', '.join(near)}" if near else ""
    raise InvalidInputError(f"no known model is called {name!r}{hint}; `diptych doctor --files list` shows all")


def mobile_clip_advice(name: str) -> str | None:
    """Return what to do with a MobileCLIP model, by its name or that of its image tower; None for other models."""
    if "mobileclip" not in name.lower() and "_mci" not in name:
        return None
    return (
        "MobileCLIP is read from its ONNX export: put onnx/vision_model.onnx, onnx/text_model.onnx, tokenizer.json, "
        "tokenizer_config.json and preprocessor_config.json into one folder (Xenova/mobileclip_s0, _s1, _s2, _b and "
        "_blt have them)"
    )
