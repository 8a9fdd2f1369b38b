"""MNIST's four files: their checksums, the mirrors that serve them, the local cache."""

from __future__ import annotations

import io
import threading
from collections.abc import Collection
from pathlib import Path

from mlpcore.data import idx
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write

# MD5 of the uncompressed files: the gzip wrappers differ between mirrors. Smallest first:
# a mirror out of reach is then noticed soon.
MD5 = {
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
}
# yann.lecun.com, MNIST's home, refuses automatic downloads.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
# Seconds. The limit on a mirror's first file counts everything, the name look-up too, on
# which the HTTP client has no limit: without a network two mirrors take 14 s at most.
CONNECT_TIMEOUT, READ_TIMEOUT = 5, 15
FIRST_FILE_LIMIT, FILE_LIMIT = 7, 300


def cache_folder() -> Path:
    """Return the folder of downloaded files in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("mlpcore") / "mnist"


def download(folder: Path, files: Collection[str]) -> str:
    """Download some of MNIST's files, verified, each stored completely or not at all.

    Parameters
    ----------
    folder : Path
        Where to store them, as ``NAME.gz``; created when missing.
    files : collection of str
        Keys of `MD5`.

    Returns
    -------
    str
        Why it did not work, on one line; empty when every file is there.
    """
    missing = [file for file in MD5 if file in files]
    reasons = []
    for mirror in MIRRORS:
        limit = FIRST_FILE_LIMIT
        try:
            folder.mkdir(parents=True, exist_ok=True)
            while missing:
                content = fetch(f"{mirror}{missing[0]}.gz", limit)
                _verify(content, missing[0])
                try:
                    atomic_write(folder / f"{missing[0]}.gz", content)
                except InputError as error:  # no other mirror helps when the disk is the trouble
                    return str(error)
                del missing[0]
                limit = FILE_LIMIT
            return ""
        except InputError as error:
            reasons.append(f"{mirror.split('/')[2]}: {error}")
        except OSError as error:
            return f"cannot write to {shown(folder)}: {error.strerror or error}"
    return "; ".join(reasons)


def fetch(url: str, limit: float) -> bytes:
    """Return the bytes behind a URL, or raise InputError with a short reason.

    The transfer runs in a daemon thread, so that `limit` (seconds) holds whatever blocks.
    An abandoned one writes only to its own memory.
    """
    import pooch

    content, failure = io.BytesIO(), list[Exception]()
    downloader = pooch.HTTPDownloader(timeout=(CONNECT_TIMEOUT, READ_TIMEOUT))

    def transfer() -> None:
        try:
            downloader(url, content, None)
        except Exception as error:  # from any layer: HTTP, TLS, proxy settings, sockets
            failure.append(error)

    thread = threading.Thread(target=transfer, daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        raise InputError(f"no answer within {limit} s")
    if failure:
        status = getattr(getattr(failure[0], "response", None), "status_code", None)
        raise InputError(f"HTTP {status}" if status else type(failure[0]).__name__)
    return content.getvalue()


def _verify(content: bytes, file: str) -> None:
    """Raise InputError unless this is MNIST's file, gzipped or not."""
    found = idx.md5(idx.decode(io.BytesIO(content), file))
    if found != MD5[file]:
        raise InputError(f"{file} has MD5 {found}, expected {MD5[file]}")
