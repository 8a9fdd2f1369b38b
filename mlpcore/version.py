"""The version of the library, for `mlpcore.__version__` and for the files that it writes."""

__version__ = "0.1.0"
