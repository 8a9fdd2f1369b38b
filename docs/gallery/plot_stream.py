"""
A stream that drifts
====================

A stream has no end and no test set: each sample is first predicted and then learned. Here the
labels change their meaning in the middle. A learner that knows the old meaning must learn the new
one.
"""

import matplotlib.pyplot as plt
import numpy as np
from river import compat, preprocessing, tree
from river.datasets import synth
from sklearn.neural_network import MLPClassifier

from mlpcore import StreamMLPClassifier

# %%
# Nine numbers describe each applicant for a loan. One rule decides on the first 2,000 of them,
# another on the rest.
n, window = 4000, 200
before, after = (synth.Agrawal(classification_function=k, seed=1) for k in (0, 4))
stream = synth.ConceptDriftStream(before, after, seed=1, position=n // 2, width=100)

# %%
# ``StreamMLPClassifier`` scales the numbers itself. The others are River's tree for drifting
# streams and scikit-learn's network, which needs scaled numbers.
learners = {
    "StreamMLPClassifier": StreamMLPClassifier(),
    "adaptive Hoeffding tree": tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "MLPClassifier": preprocessing.StandardScaler()
    | compat.convert_sklearn_to_river(MLPClassifier((50,), random_state=1), [0, 1]),
}
hits = {name: [] for name in learners}
for x, y in stream.take(n):
    for name, learner in learners.items():
        hits[name].append(learner.predict_one(x) == y)
        learner.learn_one(x, y)

# %%
# The accuracy of all three falls in the middle, and then recovers.
seen = np.arange(window, n + 1, window)
figure, axes = plt.subplots()
for name, found in hits.items():
    axes.plot(seen, 100 * np.reshape(found, (-1, window)).mean(axis=1), label=name)
axes.axvline(n / 2, color="silver", zorder=0)
axes.set(xlabel="samples", ylabel=f"right of the last {window} (%)", ylim=(30, 100))
axes.legend()
plt.show()

# %%
# For more streams and learners, and what a call costs, see :doc:`/streams`.
