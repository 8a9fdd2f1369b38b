"""The learners of streams: they learn, grow, are copied and refuse; River knows them."""

import copy
import math
import pickle
import sqlite3
import subprocess
import sys
from collections import UserDict, namedtuple
from decimal import Decimal

import numpy as np
import pytest
from scipy.special import softmax
from test_estimator_refusals import NA

from mlpcore import Network, StreamMLPClassifier, StreamMLPRegressor
from mlpcore.network.activation import HUBER_THRESHOLD
from mlpcore.philox import initial_values
from mlpcore.training.trainer import Diverged
from small_runs import same_weights


def named(row):
    return {f"n{i}": value for i, value in enumerate(row.tolist())}


def clouds(n=400, seed=0):
    """Samples (n, 5) of three classes, and their labels."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    return rng.normal(size=(n, 5)) + 3 * np.eye(5)[codes], [("a", "b", 7)[each] for each in codes]


def learnt(make=named, model=None, **parameters):
    model = model or StreamMLPClassifier(**parameters)
    for x, y in zip(*clouds()):
        assert model.learn_one(make(x), y) is None
    return model


def predictions(model, make=named):
    return [model.predict_proba_one(make(x)) for x in clouds(30, seed=1)[0]]


#: Rows of SQLite, which have `keys` and are no mappings.
ROWS, NAMES = sqlite3.connect(":memory:"), ", ".join(f"? n{i}" for i in range(5))
ROWS.row_factory = sqlite3.Row

GOOD = named(clouds()[0][0])


@pytest.mark.parametrize(
    "make, like",
    [
        (lambda row: dict([*named(row).items()][::-1]), named),
        (lambda row: UserDict(named(row)), named),
        (lambda row: named(row.astype(object)), named),
        (lambda row: namedtuple("Row", named(row))(*row), named),
        (lambda row: ROWS.execute(f"select {NAMES}", row.tolist()).fetchone(), named),
        (lambda row: np.array([tuple(row)], [(name, float) for name in named(row)])[0], named),
        (tuple, np.array),
        (lambda row: [Decimal(value) for value in row], np.array),
    ],
)
def test_any_mapping_in_any_order_and_any_sequence_gives_the_same_bits(make, like):
    assert predictions(learnt(make), make) == predictions(learnt(like), like)


def huber(error):
    """The loss, and its derivative."""
    slope = np.clip(error, -HUBER_THRESHOLD, HUBER_THRESHOLD)
    return slope * (error - slope / 2), slope


class Oracle:
    """The formulas of `cpu_simd/mixture.h` and `stream_network.pyx`, in float64.

    All samples are dictionaries, and the first has all names; labels are numbers. Without labels
    it is a regressor.
    """

    def __init__(self, n, hidden, n_labels, rate=None):
        self.loss, n_labels = "cross-entropy" if n_labels else "huber", n_labels or 1
        network = Network((2 * n, *hidden, n_labels), 0, "relu", self.loss, "glorot")
        fans = n + network.layer_sizes[1]
        network.weights[0] *= ((n + fans) / fans) ** 0.5
        network.biases[0] = (6 / fans) ** 0.5 * initial_values(fans - n, 0, len(hidden) + 2)
        weights = network.weights[0][:, :n], *network.weights[1:]
        self.layers = [np.column_stack(each).astype(float) for each in zip(weights, network.biases)]
        self.average = [each.copy() for each in self.layers]
        self.counts = [np.zeros(each.shape[1]) for each in self.layers]
        self.linear, self.squares = np.zeros((2, n_labels, n + 1))  # sums of squared gradients
        self.sums = np.zeros((3, n + 1))  # of 1, x and x^2 for each name, and for the target
        self.shares, self.steps, self.rate = np.full(3, 1 / 3), 0, rate
        self.moments, self.age, self.limits = np.zeros(3), 0, np.full(n + 1, 8.0)

    def scale(self, place):
        mean, square = self.sums[1:, place] / max(self.sums[0, place], 1)
        return mean, max(square - mean**2, 0) ** 0.5

    def inputs(self, x):
        result = np.zeros(self.linear.shape[1] - 1)
        for place, value in x.items():
            count, (mean, size) = self.sums[0, place], self.scale(place)
            often = 2 * count >= self.steps or mean**2 >= 100 * size**2
            if count == self.steps or (size > 1e-6 and often):
                value -= mean
            else:
                size = np.hypot(mean, size)
            result[place] = value / size if size > 1e-6 else 0
        return np.append(np.clip(result, -5, 5), 1)

    def forward(self, x):
        """The states of the layers, the outputs of the three models, and the answer."""
        found = []
        for layers in (self.average, self.layers):
            states = [self.inputs(x)]
            for weights in layers[:-1]:
                states.append(np.append(np.maximum(weights @ states[-1], 0), 1))
            found.append(layers[-1] @ states[-1])
        averaged, own, linear = *found, self.linear @ states[0]
        answers = own if self.shares[0] > 4 * self.shares[1] else averaged
        mixed = self.shares[:2].sum() * answers + self.shares[2] * linear
        finish = softmax if self.loss == "cross-entropy" else np.copy
        return states, [*map(finish, (own, averaged, linear))], finish(mixed)

    def predict(self, x):
        output = self.forward(x)[-1]
        if self.loss == "cross-entropy":
            return output
        mean, deviation = self.scale(-1)
        return mean + deviation * output

    def learn(self, x, y, w):
        self.steps += 1
        for place, value in [*x.items(), (-1, y)]:
            mean, deviation = self.scale(place)
            far, limit = abs(value - mean) / (deviation or np.inf), self.limits[place]
            value = mean + (value - mean) * min(1, limit / max(far, 1))
            self.sums[:, place] += 1, value, value**2
            self.limits[place] = 8 if far <= 8 else limit * (1 + (far > limit))
        states, outputs, mixed = self.forward(x)
        length = states[0] @ states[0]  # with the bias's 1
        rate = self.rate or 0.1 * (min(1, 3 / length) * min(1, 250 / (1 + self.age))) ** 0.5
        moved = 0 if self.steps % 16 else (1 - 0.99**16) * min(1, 1000 / (1 + self.age))
        w = min(w, max(1, 4 / (rate * length)))
        sharing = self.steps <= 500 or self.steps % 8 == 0
        if self.loss == "cross-entropy":
            losses = np.array([-np.log(each[y]) for each in outputs])
            own, linear = (each - np.eye(len(mixed))[y] for each in outputs[::2])
            curvature = outputs[2] * (1 - outputs[2])
        else:
            mean, deviation = self.scale(-1)
            target = np.clip((y - mean) / (deviation or 1), -5, 5)
            losses, (own, _, linear) = zip(*(huber(each - target) for each in outputs))
            losses = np.ravel(losses)
            curvature = abs(outputs[2] - target) < HUBER_THRESHOLD
        news = losses[0], losses[0], (losses[0] - self.moments[1]) ** 2
        self.moments += np.maximum([0.01, 0.001, 0.001], 1 / self.steps) * (news - self.moments)
        late, former, variance = self.moments
        rise = (late - former) / ((variance / 200) ** 0.5 or 1)  # in standard errors
        self.age = min(self.age + (rise >= 0), 4000)
        self.age *= 0.9 if rise > 2.3 else 1
        if sharing:
            if self.loss == "huber":
                losses = losses / (2 * late + 1e-30)
            self.shares *= np.maximum(np.exp(-losses / 2), 1e-4)
            self.shares = 0.995 * self.shares / self.shares.sum() + 0.005 / 3
            self.age /= 2 if self.shares[0] > 2 * self.shares[1] else 1
        gradient = w * np.outer(linear, states[0])
        longer = 1 + w * curvature * ((1 / (1 + self.squares)) @ states[0] ** 2)
        self.squares = np.minimum(self.squares + gradient**2, 199)
        self.linear -= gradient / (1 + self.squares) / longer[:, None]
        delta = w * own
        for i in reversed(range(len(self.layers))):
            below = (delta @ self.layers[i])[:-1]
            self.layers[i] -= rate * np.outer(delta, states[i])
            delta = below * (states[i][:-1] > 0)
            turn = states[i] != 0
            if self.steps % 16:
                turn &= self.counts[i] < 100
            share = np.where(turn, np.maximum(moved, 9 / (self.counts[i] + 10)), 0)
            self.average[i] += share * (self.layers[i] - self.average[i])
            self.counts[i] += turn


@pytest.mark.parametrize(
    "kind, settings",
    [
        (StreamMLPClassifier, {"classes": range(4), "class_weight": {1: 0.5}}),
        (StreamMLPClassifier, {"classes": range(4), "class_weight": "balanced"}),
        (StreamMLPRegressor, {}),
    ],
)
@pytest.mark.parametrize(
    "hidden, rate, steps",
    [((), None, 400), ((20,), None, 2600), ((20, 10), None, 400), ((8,), 0.05, 400)],
)
def test_it_learns_as_a_program_in_float64(kind, settings, hidden, rate, steps):
    """Names are dense, often missing, rarely missing, far from 0, and only present.

    The network becomes younger by both rules. In the end the names mean something else.
    """
    labels, seen, slopes = settings.get("classes", ()), np.zeros(3), np.array([1, 1, 0, -1, 0])
    rng, means = np.random.default_rng(8 if labels else 7), [0, 0, 3, 50, 0]
    oracle, model = Oracle(6, hidden, len(labels), rate), kind(hidden, rate, **settings)
    for step in range(steps):
        y = int(rng.choice(3, p=[0.7, 0.25, 0.05]))
        slopes[0] = 1 if step < 2400 else -8
        x = dict(
            enumerate((rng.normal(size=5) + (rng.random() < 0.4) * y * slopes + means).tolist())
        )
        x[5] = 1.0
        if step == 2000:  # the network is made as old as it can become, nearly
            state = model._network.__reduce__()[2]
            state[2].__reduce__()[2][5][7] = oracle.age = 3990
            model._network.__setstate__(state)
        absent = rng.random(6) < [0, 0.6, 0.1, 0.7, 0, 0.8 - 0.2 * y]
        x = {k: x[k] for k in x if step == 0 or not absent[k]}
        if step:
            found = [*model.predict_proba_one(x).values()] if labels else model.predict_one(x)
            np.testing.assert_allclose(found, oracle.predict(x), rtol=0, atol=1e-5)
        # With the last weight a step would be unstable, so it is lowered.
        w = float(rng.choice([0, 0.5, 1, 30], p=[0.3, 0.3, 0.39, 0.01])) if step else 1.0
        answer = y if labels or step % 300 < 297 else 1e4  # a few are wrong
        model.learn_one(x, answer, w)
        if w == 0:
            continue
        seen[y] += 1
        balance = seen.sum() / (np.sum(seen > 0) * seen[y])
        factors = settings.get("class_weight", {})
        factor = balance if factors == "balanced" else factors.get(y, 1)
        oracle.learn(x, answer, w * factor)


def test_before_the_first_sample_nothing_or_the_declared_labels_are_known():
    model = StreamMLPClassifier()
    assert StreamMLPRegressor().predict_one({"a": 1}) == 0
    assert model.predict_one({"a": 1}) is None and model.predict_proba_one({"a": 1}) == {}
    model = StreamMLPClassifier(classes=("x", "y"))
    assert model.predict_proba_one({"a": 1}) == {"x": 0.5, "y": 0.5}
    model.learn_one({"a": 1}, "y")
    assert model.classes_ == ["x", "y"]


def test_new_names_and_labels_leave_the_other_weights():
    """A sample of the weight 0 teaches nothing else."""

    def weights():  # of the network that learns, whose average answers
        return model._network.__reduce__()[2][2].__reduce__()[1][0].weights

    model = learnt()
    before = weights()[0][:, :5]
    for i in range(40):
        model.learn_one({f"later{i}": 1.0}, "a", w=0)
    assert model.feature_names_ == [f"n{i}" for i in range(5)] + [f"later{i}" for i in range(40)]
    grown = weights()
    assert np.array_equal(grown[0][:, :5], before)
    later = grown[0][:, 5:45]
    assert (later.std(axis=0) > 0).all()
    assert len({column.tobytes() for column in later.T}) == 40
    model.learn_one(GOOD, "new", w=0)
    assert model.classes_[-1] == "new"
    for now, before in zip(weights(), grown):
        assert np.array_equal(now[: len(before)], before)
    kept = pickle.dumps(model)
    model.learn_one(GOOD, "a", w=1e-50)  # which float32 lacks
    assert pickle.dumps(model) == kept


def test_a_name_learnt_late_counts():
    model, rng = learnt(), np.random.default_rng(5)
    for x, late in zip(clouds(600, seed=4)[0], rng.integers(0, 2, 600).tolist()):
        model.learn_one(named(x) | {"late": late}, "ab"[late])
    for late, label in enumerate("ab"):
        right = [model.predict_one(named(x) | {"late": late}) == label for x in clouds(99, 6)[0]]
        assert np.mean(right) > 0.9


@pytest.mark.parametrize("number", [1e30, -1e37, 1e-160, 3.0])
def test_numbers_of_any_size_leave_it_finite(number):
    model = learnt()
    for x in (GOOD | {"n2": number}, {"constant": 1.0}, {"constant": number}):
        assert math.isclose(sum(model.predict_proba_one(x).values()), 1)
        model.learn_one(x, "a")
    assert model.network_.is_finite()


@pytest.mark.parametrize("kind", [StreamMLPClassifier, StreamMLPRegressor])
def test_a_learner_that_diverged_learns_and_answers_nothing(kind):
    model = kind(learning_rate=3e38)
    with pytest.raises(Diverged, match="lower"):
        for k, x in enumerate(clouds()[0]):
            model.learn_one(named(x), k % 3)
    for answer in (model.predict_one, getattr(model, "predict_proba_one", model.predict_one)):
        with pytest.raises(Diverged, match="lower"):
            answer(GOOD)


def test_nan_is_a_missing_name_and_arrays_keep_its_place():
    model, other, of_arrays = StreamMLPClassifier(), StreamMLPClassifier(), StreamMLPClassifier()
    for k, (x, y) in enumerate(zip(*clouds(100))):
        x[k % 5] = math.nan
        named_x = named(x)
        model.learn_one(named_x | {"never": [math.nan, None, NA()][k % 3]}, y)
        other.learn_one({name: named_x[name] for name in named_x if name != f"n{k % 5}"}, y)
        of_arrays.learn_one(x, y)
    assert predictions(model) == predictions(other)
    assert "never" not in model.feature_names_
    row = clouds(1)[0][0]
    for k in range(5):
        x = np.where(np.arange(5) == k, math.nan, row)
        found = of_arrays.predict_proba_one(x)
        assert found != of_arrays.predict_proba_one(row)
        assert found == of_arrays.predict_proba_one(x.tolist())


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
@pytest.mark.parametrize("place", [0, 40, 80])
@pytest.mark.parametrize("kind", [StreamMLPClassifier, StreamMLPRegressor])
def test_a_copy_goes_on_by_itself(kind, place, copied):
    """To the same bits, also with names that come later; a regressor learns rows."""

    def learn(model, begin, end):
        for x, y in [*zip(*clouds(120))][begin:end]:
            y = "ab7".index(str(y))
            model.learn_one(x if kind is StreamMLPRegressor else dict([*named(x).items()][y:]), y)

    whole, model = kind((8, 5)), kind((8, 5))
    learn(whole, 0, 120)
    learn(model, 0, place)
    for each in (copied(model), model):
        learn(each, place, 120)
        assert same_weights(each.network_, whole.network_)


def test_seeds():
    assert predictions(learnt(seed=1)) == predictions(learnt(seed=1)) != predictions(learnt())
    assert predictions(learnt(seed=None)) != predictions(learnt(seed=None))


@pytest.mark.parametrize("kind", [StreamMLPClassifier, StreamMLPRegressor])
def test_many_at_once_are_the_same_bits(kind):
    pandas = pytest.importorskip("pandas")
    rows = [named(x) for x in clouds()[0]]
    y = clouds()[1] if kind is StreamMLPClassifier else [row["n0"] ** 2 for row in rows]
    for k, row in enumerate(rows):
        del row[f"n{k % 4}"]
    X = pandas.DataFrame(rows, range(5, 405))
    many, single = kind(), kind(max_features=5)
    for first in range(0, 400, 50):
        many.learn_many(X[first : first + 50], pandas.Series(y[first : first + 50]))
    for x, each in zip(rows, y):
        single.learn_one(x, each)
    found = many.predict_many(X)
    assert found.to_dict() == {k + 5: single.predict_one(x) for k, x in enumerate(rows)}
    refused = [(X, y[:9], "y of 9"), (X.assign(n6=1), y, "max_"), (X[:2], [y[0], None], "expected")]
    if kind is StreamMLPClassifier:
        shares = many.predict_proba_many(X).iloc[3].to_dict()
        assert shares == single.predict_proba_one(rows[3])
        refused.append((X, range(400), "at most 256"))
    kept = pickle.dumps(single)
    for frame, answers, words in refused:
        with pytest.raises(ValueError, match=words):
            single.learn_many(frame, answers)
    assert pickle.dumps(single) == kept


class Tuned(StreamMLPClassifier):
    """A class of somebody else."""


def test_rivers_checks_evaluation_and_clones():
    pytest.importorskip("river")
    from river import checks, datasets, evaluate, metrics, preprocessing

    for learner in (StreamMLPClassifier(), StreamMLPRegressor()):
        checks.check_estimator(learner)
        learner.mutate({"learning_rate": 0.01})
    StreamMLPClassifier().mutate({"class_weight": {"a": 2.0}})
    data, model = datasets.Phishing(), StreamMLPClassifier()
    assert evaluate.progressive_val_score(data, model, metrics.Accuracy()).get() > 0.85
    model = preprocessing.StandardScaler() | Tuned()
    for x, y in zip(*clouds()):
        model.learn_one(named(x), y)
    assert predictions(model.clone(include_attributes=True)) == predictions(model)
    assert predictions(model.clone())[0] == {}
    assert type(pickle.loads(pickle.dumps(model))["Tuned"]) is Tuned


def test_a_pickle_made_with_river_is_read_without_it():
    """A classifier is one of River's, even before somebody imports River."""
    pytest.importorskip("river")
    model = learnt()
    before = "import mlpcore; mlp = mlpcore.StreamMLPClassifier(); import river.base; "
    code = before + "assert isinstance(mlp, river.base.Classifier)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    code = "import pickle, sys; sys.modules['river'] = None; mlp = pickle.load(sys.stdin.buffer); "
    code += f"print(len(type(mlp).__mro__) - 2, mlp.predict_proba_one({GOOD}))"
    found = subprocess.check_output([sys.executable, "-c", code], input=pickle.dumps(model))
    assert found.decode().strip() == f"1 {model.predict_proba_one(GOOD)}"
