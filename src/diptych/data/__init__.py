"""Pairs of pictures and words, and the data sets they come from."""

from diptych.data.caption_files import CaptionedPicture, CaptionedPictures, read_captions
from diptych.data.dataset import Dataset, DatasetSplits
from diptych.data.datasets import dataset_names, describe_datasets, find_dataset, load_dataset
from diptych.data.datasets.flickr8k import CrowdJudgement, ExpertJudgement
from diptych.data.downloads import Download, fetch_downloads
from diptych.data.feature_files import FeatureFiles, FeatureRows, open_features
from diptych.data.folders import cache_folder, data_folder
from diptych.data.item_sequences import Items, SelectedItems
from diptych.data.pairs import ClassSplit, Pairs
from diptych.data.picture_files import find_pictures, picture_suffixes

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
]
