"""The data of new runs, and those of runs that are there."""

from __future__ import annotations

import os

from mlpcore.data import dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown


def load(folder: str | None) -> dataset.Dataset:
    """MNIST, or whatever data are in a folder that is named."""
    return dataset.load(folder, name=None if folder else "mnist")


def find_data(
    summary: DataSummary, folder: str | None, run: str, download: bool = False
) -> dataset.Dataset:
    """The data of a run.

    Parameters
    ----------
    folder
        Where they are now, if not where they were.
    run
        What the run is called in an error.
    download
        Whether MNIST may be downloaded.

    Raises
    ------
    InputError
        When they are not at hand, or those that are there are others.
    """
    if summary.name == dataset.MNIST and not folder and not os.path.isdir(summary.source):
        data = summary.part_of(dataset.load(name="mnist", download=download))
    elif folder or summary.name == dataset.EMBEDDED or os.path.isabs(summary.source):
        data = summary.load(folder)
    else:  # evidence, which has no paths
        raise InputError(f"the data of {run} are not MNIST: expected --data and their folder")
    if DataSummary.of(data).sha256 != summary.sha256:
        raise InputError(
            f"the data in {shown(data.source)} are not those of {run}: expected {summary.name}"
        )
    return data
