"""Elastic and affine deformation of images: its parameters and its public functions.

Here belongs what a deformation means. The arithmetic belongs in `mlpcore.backends`.
"""

from mlpcore.deformation.deform import (
    IDENTITY,
    DeformationParameters,
    deform,
    deform_selected,
    displacements,
)

__all__ = ["IDENTITY", "DeformationParameters", "deform", "deform_selected", "displacements"]
