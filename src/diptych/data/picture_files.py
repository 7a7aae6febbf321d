"""Picture files: by their endings, which can be read here and which a package is missing for; those of a folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from diptych.data.ignore_files import IgnoreFiles
from diptych.data.remote_files import RemotePath, full_path, is_remote
from diptych.errors import InvalidInputError, counted

EXTRA = "diptych[formats]"
"""The extra with the packages that read what Pillow does not."""


def _suffixes(names: str) -> frozenset[str]:
    return frozenset(f".{name}" for name in names.split())


# By the names that Pillow has for them. What needs other programs (EPS), or no picture has, is left out.
_PILLOW = {
    "JPEG": _suffixes("jpg jpeg jpe jfif mpo"),
    "PNG": _suffixes("png apng"),
    "WEBP": _suffixes("webp"),
    "GIF": _suffixes("gif"),
    "BMP": _suffixes("bmp dib"),
    "TIFF": _suffixes("tif tiff"),
    "PPM": _suffixes("ppm pgm pbm pnm"),
    "AVIF": _suffixes("avif avifs"),
    "JPEG2000": _suffixes("jp2 j2k jpx jpf j2c"),
    "TGA": _suffixes("tga"),
    "ICO": _suffixes("ico"),
    "ICNS": _suffixes("icns"),
    "PCX": _suffixes("pcx"),
    "DDS": _suffixes("dds"),
    "QOI": _suffixes("qoi"),
    "SGI": _suffixes("sgi"),
    "PSD": _suffixes("psd"),
}
# Pillow knows these names even where it was built without the library that decodes them.
_LIBRARIES = {"AVIF": "avif", "WEBP": "webp", "JPEG2000": "jpg_2000"}

_RAW = _suffixes(
    "dng nef nrw cr2 cr3 crw arw srf sr2 raf orf rw2 pef srw raw rwl 3fr fff iiq dcr kdc mrw x3f erf mef mos"
)
_VIDEOS = _suffixes("mp4 m4v mov webm mkv avi mpg mpeg mts m2ts 3gp wmv flv ogv")
# The packages of the extra, and what each of them reads.
_PACKAGES = {
    "pillow_heif": _suffixes("heic heif hif"),
    "rawpy": _RAW,
    "resvg_py": _suffixes("svg"),
    "av": _VIDEOS,
}
_READABLE = frozenset().union(*_PILLOW.values(), *_PACKAGES.values())
# Pictures that nothing here reads; they are named, so that nobody wonders where they are.
_NEVER = _suffixes("jxl eps ai xcf kra exr hdr psb wmf emf svgz cdr jxr fits xpm ora")


@cache
def picture_suffixes() -> frozenset[str]:
    """Return the endings of file names, in lower case, that are taken for pictures on this machine.

    They are the picture formats that the installed Pillow reads, and videos, drawings and the files of phones and
    cameras where the extra ``diptych[formats]`` is installed.

    >>> from diptych.data import picture_suffixes
    >>> ".jpg" in picture_suffixes(), ".pdf" in picture_suffixes()
    (True, False)
    """
    from PIL import features

    missing = {name for name, library in _LIBRARIES.items() if not features.check(library)}
    found = [suffixes for name, suffixes in _PILLOW.items() if name not in missing]
    return frozenset().union(*found, *(suffixes for package, suffixes in _PACKAGES.items() if find_spec(package)))


def is_picture_suffix(suffix: str) -> bool:
    """Return True if an ending is one of `picture_suffixes`; Pillow is imported only where one may be.

    >>> is_picture_suffix(".jpg"), is_picture_suffix(".dog")
    (True, False)
    """
    return suffix in _READABLE and suffix in picture_suffixes()


@cache
def _unread_suffixes() -> frozenset[str]:
    return (_NEVER | _READABLE) - picture_suffixes()


def is_raw(path: str | os.PathLike[str]) -> bool:
    """Return True if a file is named like what a camera writes before it makes a picture of it."""
    return _suffix(path) in _RAW


def is_video(path: str | os.PathLike[str]) -> bool:
    """Return True if a file is named like a video.

    >>> is_video("clip.MOV"), is_video("clip.jpg")
    (True, False)
    """
    return _suffix(path) in _VIDEOS


def unread_reason(path: str | os.PathLike[str]) -> str | None:
    """Return why a picture of its kind cannot be read on this machine, None for all others.

    >>> unread_reason("a.jxl")
    'files of the kind JXL cannot be read; convert it to JPEG or PNG'
    >>> unread_reason("a.jpg"), unread_reason("notes.txt")
    (None, None)
    """
    # Most of what is asked for has no ending, and need not wait for Pillow.
    if not _suffix(path) or _suffix(path) not in _unread_suffixes():
        return None
    fix = "convert it to JPEG or PNG" if _suffix(path) in _NEVER else f"install {EXTRA}"
    return f"files of the kind {_kind(path)} cannot be read; {fix}"


def unread_kinds(paths: Iterable[str | os.PathLike[str]]) -> dict[str, int]:
    """Return how many of some files are pictures of each kind that cannot be read on this machine."""
    return dict(sorted(Counter(_kind(path) for path in paths if _suffix(path) in _unread_suffixes()).items()))


def describe_unread(kinds: dict[str, int]) -> str:
    """Return one line about what :func:`unread_kinds` has counted.

    >>> describe_unread({"JXL": 2})
    '2 files of kinds that cannot be read: JXL; convert them to JPEG or PNG'
    """
    installable = [kind for kind in kinds if f".{kind.lower()}" not in _NEVER]
    fix = f"install {EXTRA}" if installable else "convert them to JPEG or PNG"
    fix += f" for {', '.join(installable)}" if installable and len(installable) < len(kinds) else ""
    return f"{counted(sum(kinds.values()), 'file')} of kinds that cannot be read: {', '.join(kinds)}; {fix}"


def _suffix(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(path)[1].lower()


def _kind(path: str | os.PathLike[str]) -> str:
    return _suffix(path).removeprefix(".").upper()


# As in addresses of media, so that a browser understands it too.
_MOMENT = re.compile(r"(?P<video>.+)#t=(?P<seconds>\d+(?:\.\d+)?)", re.DOTALL)


def moment_path(video: Path, seconds: float) -> Path:
    """Return the path that stands for a moment of a video.

    >>> moment_path(Path("clip.mp4"), 12.5).name
    'clip.mp4#t=12.500'
    """
    return video.with_name(f"{video.name}#t={seconds:.3f}")


def split_moment(path: str | os.PathLike[str]) -> tuple[Path, float | None]:
    """Return the file of a path and, where it stands for a moment of a video, the seconds from its beginning.

    >>> split_moment("clip.mp4#t=12.500"), split_moment("a.jpg")
    ((PosixPath('clip.mp4'), 12.5), (PosixPath('a.jpg'), None))
    """
    name = os.fspath(path)
    # Thousands of files come this way, and few are moments.
    found = _MOMENT.fullmatch(name) if "#" in name else None
    if found is None or not is_video(found["video"]):
        return path if isinstance(path, Path) else Path(path), None
    video = RemotePath(found["video"]) if isinstance(path, RemotePath) else Path(found["video"])
    return video, float(found["seconds"])


def clock(seconds: float) -> str:
    """Return a time in a video as people write it.

    >>> clock(12.5), clock(3725)
    ('0:12', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


OnUnreadable = Callable[[Path, str], None]


def find_pictures(folder: str | os.PathLike[str], *, on_unreadable: OnUnreadable | None = None) -> Iterator[Path]:
    """Yield the picture files under a folder or an address such as s3://bucket/photos, in the order of their paths.

    A picture is a regular file, or a link to one, with one of the :func:`picture_suffixes`; nothing is opened, so pipes
    and devices cannot block. Hidden files and folders are left out, and what ``.diptychignore`` names, in the syntax of
    ``.gitignore``, in its folder or in those above (not at addresses). A link to a folder is followed when the folder
    lies elsewhere, and each folder is entered once, so links in a circle end. ``on_unreadable(path, reason)`` is told
    of folders and links that cannot be read, and of pictures of kinds that cannot be read on this machine; without it
    they are passed over.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from diptych.data import find_pictures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.PNG", "a.jpg", ".hidden.jpg", "notes.txt"):
    ...         (Path(folder) / name).touch()
    ...     [picture.name for picture in find_pictures(folder)]
    ['a.jpg', 'b.PNG']
    """
    root, unreadable = full_path(folder) if is_remote(folder) else Path(folder), on_unreadable or (lambda *_: None)
    if not root.is_dir():
        what = "is a file" if root.exists() else "does not exist"
        raise InvalidInputError(f"{root} {what}; name the folder that holds the pictures")
    return _walk_remote(root, unreadable) if isinstance(root, RemotePath) else _walk(root, unreadable)


def _walk_remote(root: RemotePath, on_unreadable: OnUnreadable) -> Iterator[Path]:
    suffixes = picture_suffixes()
    for path in root.files():
        if any(part.startswith(".") for part in path.relative_to(root).parts):
            continue
        if path.suffix.lower() in suffixes:
            yield path
        elif reason := unread_reason(path):
            on_unreadable(path, reason)


def _walk(root: Path, on_unreadable: OnUnreadable) -> Iterator[Path]:
    suffixes = picture_suffixes()
    real_root, ignored = root.resolve(), IgnoreFiles()
    entered = {_key(os.stat(root))}
    # A stack of open listings instead of recursion: folders may nest deeper than Python's stack.
    listings = [iter(_entries(root, on_unreadable))]
    while listings:
        entry = next(listings[-1], None)
        if entry is None:
            listings.pop()
            continue
        path = Path(entry.path)
        try:
            if ignored.is_ignored(path.absolute(), is_folder=entry.is_dir()):
                continue
            if entry.is_dir():
                if _is_new(entry, real_root, entered):
                    listings.append(iter(_entries(path, on_unreadable)))
            elif path.suffix.lower() in suffixes and entry.is_file():
                yield path
            elif (reason := unread_reason(path)) and entry.is_file():
                on_unreadable(path, reason)
        except OSError as error:
            on_unreadable(path, error.strerror or str(error))


def _is_new(entry: os.DirEntry[str], real_root: Path, entered: set[tuple[int, int]]) -> bool:
    """Return True if a folder has not been entered and will not be, by another way; it counts as entered now."""
    if entry.is_symlink():
        target = Path(entry.path).resolve()
        # What is walked anyway, or a folder that holds all of it.
        if target.is_relative_to(real_root) or real_root.is_relative_to(target):
            return False
    key = _key(os.stat(entry.path))
    is_new = key not in entered
    entered.add(key)
    return is_new


def _entries(folder: Path, on_unreadable: OnUnreadable) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        on_unreadable(folder, error.strerror or str(error))
        return []


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
