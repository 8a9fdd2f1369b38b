"""The quality of networks: error rates, intervals, confusion matrices, committees, probabilities.

Every figure of merit that is computed from a network's outputs belongs here; backends only count
errors. Tables and pictures of the results belong in `mlpcore.report`.
"""

from mlpcore.evaluation.copies import Copies
from mlpcore.evaluation.evaluation import Evaluation, evaluate

__all__ = ["Copies", "Evaluation", "evaluate"]
