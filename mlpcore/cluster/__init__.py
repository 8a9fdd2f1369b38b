"""Committees trained on a Dask cluster: what a task does, and the chains of tasks of all members.

Dask schedules, transports and repeats; here is only what it runs, and what comes home. Commands
and what people look at belong in `mlpcore.commands` and `mlpcore.report`.
"""

from mlpcore.cluster.chains import (
    Follower,
    LostScheduler,
    check_scheduler,
    require_distributed,
    train_members,
)

__all__ = [
    "Follower",
    "LostScheduler",
    "check_scheduler",
    "require_distributed",
    "train_members",
]
