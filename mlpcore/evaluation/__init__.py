"""What a network's outputs are worth: errors, intervals, confusions, committees, probabilities.

Here belongs every figure of merit. Tables and pictures of them belong in `mlpcore.report`.
"""

from mlpcore.evaluation.committee import Committee
from mlpcore.evaluation.evaluation import Evaluation, evaluate

__all__ = ["Committee", "Evaluation", "evaluate"]
