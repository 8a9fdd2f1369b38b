"""What people look at: progress, tables, reports, figures, contact sheets, logs for other tools.

Nothing here decides or computes a result: `mlpcore.evaluation` computes, `mlpcore.commands` reads
options and returns exit statuses. The observers of a `Trainer` are `ProgressBar`,
`TensorBoardLogger` and `MLflowLogger`.
"""

from mlpcore.report.loggers import MLflowLogger, TensorBoardLogger
from mlpcore.report.progress import ProgressBar

__all__ = ["MLflowLogger", "ProgressBar", "TensorBoardLogger"]
