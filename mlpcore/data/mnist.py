"""MNIST's four files: their checksums, the mirrors that serve them, and the local cache."""

import gzip
import io
import logging
import zlib
from collections.abc import Iterable
from pathlib import Path

from mlpcore.data.idx import FILES, idx_sets
from mlpcore.errors import InputError, shown
from mlpcore.files import check_writable

LOCAL = Path("data", "mnist")

#: MD5 of the uncompressed files, because the gzip wrappers differ between mirrors.
_SUMS = (
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)
MD5 = dict(zip(FILES, _SUMS))

#: The shape of its training pixels, and its `Dataset.sha256`.
IDENTITY = ((60_000, 28, 28), "d042f72cb6d2eb3e9230dbc20233bf563743dfe3df5426a4da432abaeafb7b70")

#: MNIST's home, yann.lecun.com, refuses automatic downloads.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)

#: Seconds to wait for a connection, and for the next bytes.
TIMEOUTS = 5, 15


def cache_folder() -> Path:
    """Return the folder of downloaded files in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("mlpcore") / "mnist"


def locate(may_download: bool) -> tuple[Path, str]:
    """The folder of MNIST's files, and why they are not there, or an empty text.

    It is `LOCAL`, or the cache, into which they are downloaded.
    """
    if LOCAL.is_dir() and idx_sets(LOCAL):
        return LOCAL.absolute(), ""
    cache = cache_folder()
    try:
        present = idx_sets(cache).get("", {}) if cache.is_dir() else {}
        missing = [file for file in FILES if file not in present]
        reason = "downloading is off" if missing else ""
        if missing and may_download:
            reason = download(cache, missing)
    except InputError as error:  # the cache cannot be read or written
        reason = str(error)
    looked = f"looked in {shown(LOCAL)}, {shown(cache)}"
    lacking = f"MNIST was not found ({looked}) and could not be downloaded ({reason})"
    return cache, lacking if reason else ""


def download(folder: Path, files: Iterable[str]) -> str:
    """Download some of MNIST's files, the keys of `MD5`, into a folder, uncompressed.

    Each is checked, and then stored completely or not at all. Returned is why no mirror delivered
    all of them, on one line; empty when one did. An InputError when the folder cannot be written.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    check_writable(folder)
    reasons = []
    for mirror in MIRRORS:
        try:
            for file in files:  # one that an earlier mirror delivered is not fetched again
                md5 = f"md5:{MD5[file]}"
                pooch.retrieve(f"{mirror}{file}.gz", md5, file, folder, downloader=fetch)
            return ""
        except (OSError, ValueError, EOFError, zlib.error) as error:  # requests raises OSErrors
            reasons.append(f"{mirror.split('/')[2]}: {_reason(error)}")
    return "; ".join(reasons)


def fetch(url: str, path: str, _: object) -> None:
    """Download a gzipped file and store it uncompressed, for `pooch` to check."""
    import pooch

    content = io.BytesIO()
    pooch.HTTPDownloader(timeout=TIMEOUTS)(url, content, None)
    Path(path).write_bytes(gzip.decompress(content.getvalue()))


def _reason(error: Exception) -> str:
    """Return the reason of a failed download, on one line."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)  # the content is wrong
