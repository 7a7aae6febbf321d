"""Getting data sets that are public by address."""

from diptych.data.downloads.download import Download
from diptych.data.downloads.fetching import fetch_downloads

__all__ = ["Download", "fetch_downloads"]
