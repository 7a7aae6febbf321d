"""One file per data set; a new one is imported here and added to the tuple."""

from diptych.data.dataset import Dataset
from diptych.data.datasets.clickture import CLICKTURE
from diptych.data.datasets.coco import COCO
from diptych.data.datasets.flickr8k import FLICKR8K
from diptych.data.datasets.flickr30k import FLICKR30K
from diptych.data.datasets.mirflickr import MIRFLICKR
from diptych.data.datasets.nus_wide import NUS_WIDE
from diptych.data.datasets.pascal_sentence import PASCAL_SENTENCE
from diptych.data.datasets.scenes_dataset import SCENES
from diptych.data.datasets.tvgraz import TVGRAZ
from diptych.data.datasets.wikipedia import WIKIPEDIA

DATASETS: tuple[Dataset, ...] = (
    WIKIPEDIA,
    PASCAL_SENTENCE,
    TVGRAZ,
    NUS_WIDE,
    MIRFLICKR,
    FLICKR8K,
    FLICKR30K,
    COCO,
    CLICKTURE,
    SCENES,
)
