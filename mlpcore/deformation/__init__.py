"""Elastic and affine deformation of images: the parameters and the public functions.

The meaning of a deformation belongs here: its parameters, and which random numbers an image gets.
The arithmetic belongs in `mlpcore.backends`.
"""

from mlpcore.deformation.deform import deform, deform_selected, displacements
from mlpcore.deformation.parameters import IDENTITY, DeformationParameters

__all__ = ["IDENTITY", "DeformationParameters", "deform", "deform_selected", "displacements"]
