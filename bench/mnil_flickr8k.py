"""MNiL on Flickr8k, ResNet-50 fine-tuned together with the memory for words, beside LDSP on the same features.

    python -m bench.mnil_flickr8k --pack FOLDER [--side 144] [--quality 75]
    python -m bench.mnil_flickr8k --run FOLDER [--towers words minilm] [--seeds 3] [--epochs 30]

``--pack`` writes what the other needs: ``resnet50.npz``, weights in half precision (those of
``diptych.encoders.ResNet50``), and ``flickr8k.npz``, the photos as small JPEG files with their captions; ``--run``
needs neither the data set nor the weights' package, and is meant for a machine with a graphics card. LDSP learns from
the features of the same ResNet-50 as it comes, of the same pictures, and from latent semantics of the captions. Where
there are several text towers to choose from, that with the best mean recall on the 1,000 development photos is taken.
Test are the 1,000 photos of the published split with all five captions: each must be reached at least as well as by
LDSP.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from bench.flickr8k_features import MEASURES, PARTS, line, recalls
from diptych.arrays import unit_rows
from diptych.data import load_dataset
from diptych.encoders import TfidfTopics
from diptych.encoders.image.picture_decoding import read_picture
from diptych.models import LDSP, MNiL
from diptych.models.neural._torch import choose_device, torch_package
from diptych.models.neural.mnil._networks import PictureNetwork
from diptych.models.neural.mnil._parameters import EpochRecord
from diptych.models.neural.mnil._plan import ConvolutionPlan, packaged_resnet, read_weights, write_weights

PHOTOS = "flickr8k.npz"
WEIGHTS = "resnet50.npz"
TOPICS = 512
LDSP_EPOCHS = 30
PICTURES_AT_ONCE = 128


def pack(folder: Path, side: int, quality: int, most: int | None) -> None:
    """Write weights and photos for another machine."""
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(packaged_resnet(), folder / WEIGHTS)
    flickr = load_dataset("flickr8k")
    content: dict[str, np.ndarray] = {}
    for part in PARTS:
        pairs = getattr(flickr, part)
        pairs = pairs if most is None else pairs.select(np.arange(min(most, pairs.n_images)))
        files = []
        for photo in pairs.images:
            image = Image.fromarray(read_picture(photo, shortest_side=side))
            stream = io.BytesIO()
            image.resize((side, side), Image.Resampling.LANCZOS).save(stream, "JPEG", quality=quality)
            files.append(stream.getvalue())
        content[f"{part}.bytes"] = np.frombuffer(b"".join(files), dtype=np.uint8)
        content[f"{part}.sizes"] = np.array([len(file) for file in files])
        content[f"{part}.captions"] = np.array(list(pairs.texts))
        content[f"{part}.owners"] = np.asarray(pairs.owners)
    # Captions are padded to the longest, which compression takes away again.
    np.savez_compressed(folder / PHOTOS, **content)
    for name in (WEIGHTS, PHOTOS):
        print(f"{name}: {(folder / name).stat().st_size / 2**20:.1f} MiB")


def unpacked(folder: Path, part: str) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return (pictures, captions, the picture of each caption)."""
    with np.load(folder / PHOTOS, allow_pickle=False) as archive:
        ends = np.cumsum(archive[f"{part}.sizes"])
        whole = archive[f"{part}.bytes"].tobytes()
        captions, owners = archive[f"{part}.captions"].tolist(), archive[f"{part}.owners"]
    starts = ends - np.diff(ends, prepend=0)
    pictures = [
        np.asarray(Image.open(io.BytesIO(whole[start:end])))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return np.stack(pictures), captions, owners


def resnet_features(pictures: np.ndarray, weights: Path) -> np.ndarray:
    """Return the pooled features of ResNet-50 as it comes."""
    torch, device = torch_package(), choose_device("auto")
    network = PictureNetwork(ConvolutionPlan.resnet50(), read_weights(weights), np.random.default_rng(0)).to(device)
    with torch.no_grad():
        blocks = np.array_split(pictures, -(-len(pictures) // 100))
        return np.concatenate([network(torch.from_numpy(block).to(device)).cpu().numpy() for block in blocks])


def run(folder: Path, options: argparse.Namespace) -> int:
    """Train both with each seed and compare their means."""
    pictures, captions, owners = unpacked(folder, "train")
    unseen, unseen_captions, unseen_owners = unpacked(folder, "test")
    side = pictures.shape[1]
    print(
        f"{len(pictures):,} photos of {side} pixels, {len(captions):,} captions; {len(unseen):,} to search", flush=True
    )

    features = [unit_rows(resnet_features(part, folder / WEIGHTS)) for part in (pictures, unseen)]
    topics = TfidfTopics(n_components=TOPICS).fit(captions)
    words = [topics.transform(texts) for texts in (captions, unseen_captions)]
    print(f"{'':<40}" + "".join(f"{way} {m.label}"[:8].rjust(8) for way in ("i", "t") for m in MEASURES))

    def trained(tower: str, seed: int, part: str) -> np.ndarray:
        started = time.perf_counter()
        records: list[EpochRecord] = []
        model = network(tower, seed, side, folder, options.epochs)
        model.fit([pictures[owner] for owner in owners], captions, progress=records.append)
        photos, texts, of_photo = (unseen, unseen_captions, unseen_owners) if part == "test" else unpacked(folder, part)
        values = recalls(model.encode_images(photos), model.encode_texts(texts), of_photo)
        print(line(f"MNiL, {tower}, {part}, seed {seed}", values), f"{time.perf_counter() - started:8.0f} s")
        last = records[-1]
        print(f"  {last.pictures_per_second:,.0f} pictures/s, {last.draws:.1f} draws, loss {last.loss:.3f}", flush=True)
        return values

    tower = options.towers[0]
    if len(options.towers) > 1:
        tower = max(options.towers, key=lambda name: float(trained(name, 0, "dev").mean()))
    found: dict[str, list[np.ndarray]] = {"LDSP": [], "MNiL": []}
    for seed in range(options.seeds):
        started = time.perf_counter()
        branches = LDSP(random_state=seed, epochs=LDSP_EPOCHS).fit(features[0][owners], words[0])
        points = branches.encode_images(features[1]), branches.encode_texts(words[1])
        found["LDSP"].append(recalls(*points, unseen_owners))
        print(line(f"LDSP, seed {seed}", found["LDSP"][-1]), f"{time.perf_counter() - started:8.0f} s", flush=True)
        found["MNiL"].append(trained(tower, seed, "test"))
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    for name, values in found.items():
        print(line(f"{name}, mean", means[name]))
        print(line(f"{name}, deviation", np.std(values, axis=0)))
    is_met = bool((means["MNiL"] >= means["LDSP"]).all())
    print("every bar is met" if is_met else "missed: MNiL is below LDSP somewhere")
    return 0 if is_met else 1


def network(tower: str, seed: int, side: int, folder: Path, epochs: int) -> MNiL:
    """Return MNiL from pixels with one of the text towers, untrained."""
    return MNiL(
        image_tower="resnet50",
        image_weights=str(folder / WEIGHTS),
        image_side=side,
        image_crop=side - side // 9,
        flip=True,
        n_components=512,
        text_tower=tower,
        word_size=300,
        hidden_size=512,
        dropout=0.3,
        min_texts=3,
        max_words=32 if tower == "minilm" else 20,
        learning_rate=1e-3,
        map_factor=1.0,
        image_factor=0.05,
        weight_decay=1e-2,
        margin=0.3,
        positive="own_pair",
        batch_size=5 * PICTURES_AT_ONCE,
        texts_per_picture=5,
        epochs=epochs,
        random_state=seed,
    )


def main() -> int:
    """Pack, or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--pack", type=Path, help="write weights and photos into this folder")
    task.add_argument("--run", type=Path, help="train on what was packed into this folder")
    parser.add_argument("--side", type=int, default=144, help="side of the packed photos in pixels")
    parser.add_argument("--quality", type=int, default=75, help="of the packed JPEG files")
    parser.add_argument("--most", type=int, help="photos of each part to pack; all by default")
    parser.add_argument("--towers", nargs="+", choices=("words", "minilm"), default=["words", "minilm"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    if options.pack is not None:
        pack(options.pack, options.side, options.quality, options.most)
        return 0
    return run(options.run, options)


if __name__ == "__main__":
    sys.exit(main())
