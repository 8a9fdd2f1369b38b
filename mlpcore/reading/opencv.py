"""OpenCV, which the extra 'read' installs. It is imported when it is first used."""

from __future__ import annotations

from typing import Any

from mlpcore.errors import InputError


def import_opencv() -> Any:
    """The package `cv2`; an InputError if it cannot be imported."""
    try:
        import cv2
    except ImportError as error:
        raise InputError(
            f"OpenCV cannot be imported: {error}; expected mlpcore's extra 'read' "
            "(pip install 'mlpcore[read]')"
        ) from None
    return cv2


class _OpenCV:
    """Stands for the package, so that modules which use it can be imported without it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_opencv(), name)


cv2: Any = _OpenCV()
