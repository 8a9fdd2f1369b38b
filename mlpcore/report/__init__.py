"""Output for people: progress, tables, reports, figures, contact sheets.

Nothing here decides or computes a result: `mlpcore.evaluation` computes, `mlpcore.commands` reads
options and returns exit statuses. `ProgressBar` is an observer of a `Trainer`.
"""

from mlpcore.report.console import ProgressBar

__all__ = ["ProgressBar"]
