"""Pairs of pictures and words, and the data sets they come from."""

from typing import TYPE_CHECKING

from diptych.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from diptych.data.caption_files import CaptionedPicture, CaptionedPictures, read_captions
    from diptych.data.dataset import Dataset, DatasetSplits
    from diptych.data.datasets import dataset_names, describe_datasets, find_dataset, load_dataset
    from diptych.data.datasets.flickr8k import CrowdJudgement, ExpertJudgement
    from diptych.data.downloads import Download, fetch_downloads
    from diptych.data.feature_files import FeatureFiles, FeatureRows, open_features
    from diptych.data.folders import cache_folder, data_folder
    from diptych.data.item_sequences import Items, SelectedItems
    from diptych.data.packed_pictures import unpack_pictures
    from diptych.data.pairs import ClassSplit, Pairs
    from diptych.data.picture_files import find_pictures, picture_suffixes
else:
    # Who asks for a folder waits for no data set.
    __getattr__ = lazy_exports(
        __name__,
        {
            "diptych.data.caption_files": "CaptionedPicture CaptionedPictures read_captions",
            "diptych.data.dataset": "Dataset DatasetSplits",
            "diptych.data.datasets": "dataset_names describe_datasets find_dataset load_dataset",
            "diptych.data.datasets.flickr8k": "CrowdJudgement ExpertJudgement",
            "diptych.data.downloads": "Download fetch_downloads",
            "diptych.data.feature_files": "FeatureFiles FeatureRows open_features",
            "diptych.data.folders": "cache_folder data_folder",
            "diptych.data.item_sequences": "Items SelectedItems",
            "diptych.data.packed_pictures": "unpack_pictures",
            "diptych.data.pairs": "ClassSplit Pairs",
            "diptych.data.picture_files": "find_pictures picture_suffixes",
        },
    )

__all__ = [
    "CaptionedPicture",
    "CaptionedPictures",
    "ClassSplit",
    "CrowdJudgement",
    "Dataset",
    "DatasetSplits",
    "Download",
    "ExpertJudgement",
    "FeatureFiles",
    "FeatureRows",
    "Items",
    "Pairs",
    "SelectedItems",
    "cache_folder",
    "data_folder",
    "dataset_names",
    "describe_datasets",
    "fetch_downloads",
    "find_dataset",
    "find_pictures",
    "load_dataset",
    "open_features",
    "picture_suffixes",
    "read_captions",
    "unpack_pictures",
]
