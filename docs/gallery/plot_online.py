"""
On-line or mini-batches?
========================

On-line training updates the weights after every sample, mini-batches after every few. More updates
learn more from an epoch. With scikit-learn they take long; here they do not.
"""

import time
import warnings

import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from mlpcore import OnlineMLPClassifier, dataset

data = dataset.load(name="digits")
X, y = (data.train_images.reshape(-1, data.n_inputs) + 1) / 2, data.train_labels
X_test, y_test = (data.test_images.reshape(-1, data.n_inputs) + 1) / 2, data.test_labels
epochs = 8

# %%
# Train epoch by epoch, and note the test error and the time after each. So small matrices are
# multiplied fastest by one thread, so scikit-learn gets one.


def curve(model):
    errors, times, spent = [], [], 0.0
    for _ in range(epochs):
        started = time.perf_counter()
        with threadpool_limits(1):
            model.fit(X, y)  # with warm_start it goes on
        spent += time.perf_counter() - started
        errors.append(100 * (1 - model.score(X_test, y_test)))
        times.append(spent)
    return times, errors


def mini_batches(size, rate):
    return MLPClassifier(
        (100,),
        solver="sgd",
        batch_size=size,
        learning_rate_init=rate,
        momentum=0.9,
        nesterovs_momentum=True,
        max_iter=1,
        warm_start=True,
        random_state=0,
    )


online = OnlineMLPClassifier(
    (100,),
    learning_rate_init=0.01,
    decay="factor",
    max_iter=1,
    warm_start=True,
    random_state=0,
)

# %%
# scikit-learn warns that one epoch is not enough, each time. That is meant here.
warnings.simplefilter("ignore")
curves = {
    "mlpcore, on-line": curve(online),
    "scikit-learn, batches of 32": curve(mini_batches(32, 0.05)),
    "scikit-learn, batches of 200": curve(mini_batches(200, 0.1)),
    "scikit-learn, batches of 1": curve(mini_batches(1, 0.001)),
}

figure, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(7, 3.8))
for name, (times, errors) in curves.items():
    left.plot(range(1, epochs + 1), errors)
    right.plot(times, errors, label=name)
left.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 20))
left.set_title("841-100-10 on 1,442 digits")
right.set(xlabel="seconds of training", xscale="log")
left.xaxis.set_major_locator(MaxNLocator(integer=True))
figure.legend(loc="outside lower center", ncols=2)
plt.show()
