"""Committees trained on a Dask cluster: what a task does, and the tasks of all members.

Dask schedules, transports and repeats. Here is only what it runs, and what is saved. Commands and
what people look at belong in `mlpcore.commands` and `mlpcore.report`. Whoever imports this package
needs Dask's package `distributed`.
"""

from mlpcore.cluster.members import Progress, check_scheduler, train_members

__all__ = ["Progress", "check_scheduler", "train_members"]
