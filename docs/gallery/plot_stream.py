"""
A stream that drifts
====================

A stream has no end, and no test set: each sample is predicted first and learnt then. Here the
labels mean something else from the middle on. Whoever has learnt the old meaning must learn the new
one.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from river import compat, preprocessing, tree
from river.datasets import synth
from sklearn.neural_network import MLPClassifier

from mlpcore import StreamMLPClassifier

# %%
# Applicants for a loan, as nine numbers each. One rule decides on the first 2,000 of them, another
# on the rest.
n, window = 4000, 200
before, after = (synth.Agrawal(classification_function=k, seed=1) for k in (0, 4))
stream = synth.ConceptDriftStream(before, after, seed=1, position=n // 2, width=100)

# %%
# ``StreamMLPClassifier`` scales numbers itself. The others are River's tree for streams that drift,
# and scikit-learn's network, which needs scaled numbers.
learners = {
    "StreamMLPClassifier": StreamMLPClassifier(),
    "adaptive Hoeffding tree": tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "MLPClassifier": preprocessing.StandardScaler()
    | compat.convert_sklearn_to_river(MLPClassifier((50,), random_state=1), [0, 1]),
}
hits = {name: [] for name in learners}
seconds = dict.fromkeys(learners, 0.0)
for x, y in stream.take(n):
    for name, learner in learners.items():
        started = time.perf_counter()
        hits[name].append(learner.predict_one(x) == y)
        learner.learn_one(x, y)
        seconds[name] += time.perf_counter() - started

# %%
# All fall in the middle, and then recover.
figure, (curves, bars) = plt.subplots(1, 2, width_ratios=(3, 2), figsize=(7, 3.4))
seen = np.arange(window, n + 1, window)
for name, found in hits.items():
    curves.plot(seen, 100 * np.reshape(found, (-1, window)).mean(axis=1), label=name)
curves.axvline(n / 2, color="silver", zorder=0)
curves.set(xlabel="samples", ylabel=f"right of the last {window} (%)", ylim=(30, 100))
names, costs = list(learners), [1e6 * seconds[name] / n for name in learners]
for place, cost in enumerate(costs):
    bars.barh(place, cost)
    bars.annotate(f"{cost:,.0f}", (cost, place), (4, 0), textcoords="offset points", va="center")
bars.set(yticks=[], xscale="log", xlabel="µs a sample, both calls", ylim=(2.6, -0.6))
bars.set_xlim(1, 20 * max(costs))
figure.legend(*curves.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# :doc:`/streams` has more streams, and more learners.
