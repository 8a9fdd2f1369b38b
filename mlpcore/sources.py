"""What the compiled modules and kernels are made of, told by a hash.

`setup.py` runs this file too, before there is a package to import.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

PATTERNS = (
    "setup.py",
    "mlpcore/**/*.p[yx][xd]",
    "cpu_simd/*.[ch]",
    "cuda/*.cu",
    "cuda/*.cuh",
    "cuda/compile_fatbin.py",
)

#: Where a build in place leaves the hash, in the repository.
STAMP = Path("build", "built-from.sha256")


def sources_sha256(root: Path) -> str:
    """SHA-256 of all sources in a repository, names included; an editor's hidden files are none."""
    digest = hashlib.sha256()
    for path in sorted(each for pattern in PATTERNS for each in root.glob(pattern)):
        if not path.name.startswith("."):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def is_stale(root: Path) -> bool:
    """Whether sources have changed since the build, as far as that is known."""
    try:
        built_from = (root / STAMP).read_bytes()
    except OSError:
        return False
    return built_from.strip() != sources_sha256(root).encode()
