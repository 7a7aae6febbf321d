"""Pairs of pictures and words, and the data sets they come from."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import declared_exports

if TYPE_CHECKING:
    from diptych.data.caption_files import CaptionedPicture as CaptionedPicture
    from diptych.data.caption_files import CaptionedPictures as CaptionedPictures
    from diptych.data.caption_files import read_captions as read_captions
    from diptych.data.dataset import Dataset as Dataset
    from diptych.data.dataset import DatasetSplits as DatasetSplits
    from diptych.data.datasets import dataset_names as dataset_names
    from diptych.data.datasets import describe_datasets as describe_datasets
    from diptych.data.datasets import find_dataset as find_dataset
    from diptych.data.datasets import load_dataset as load_dataset
    from diptych.data.datasets.captioned_photographs import CrowdJudgement as CrowdJudgement
    from diptych.data.datasets.captioned_photographs import ExpertJudgement as ExpertJudgement
    from diptych.data.downloads import Download as Download
    from diptych.data.downloads import fetch_downloads as fetch_downloads
    from diptych.data.feature_files import FeatureFiles as FeatureFiles
    from diptych.data.feature_files import FeatureRows as FeatureRows
    from diptych.data.feature_files import open_features as open_features
    from diptych.data.folders import cache_folder as cache_folder
    from diptych.data.folders import data_folder as data_folder
    from diptych.data.item_sequences import Items as Items
    from diptych.data.item_sequences import SelectedItems as SelectedItems
    from diptych.data.packed_pictures import unpack_pictures as unpack_pictures
    from diptych.data.pairs import ClassSplit as ClassSplit
    from diptych.data.pairs import Pairs as Pairs
    from diptych.data.picture_files import find_pictures as find_pictures
    from diptych.data.picture_files import picture_suffixes as picture_suffixes
else:
    # Who asks for a folder waits for no data set.
    __getattr__, __all__ = declared_exports(__name__)
