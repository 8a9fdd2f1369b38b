"""mlpcore: true on-line back-propagation and elastic deformation, fast."""

from mlpcore.errors import InputError

__version__ = "0.1.0"
__all__ = ["InputError"]
