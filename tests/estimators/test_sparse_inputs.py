"""Sparse matrices are learnt as the arrays that they stand for, and never made dense."""

import numpy as np
import pytest
from scipy import sparse

from mlpcore import InputError, OnlineMLPClassifier

RNG = np.random.default_rng(0)
X = np.where(RNG.random((300, 40)) < 0.2, RNG.normal(size=(300, 40)), 0).astype(np.float32)
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def make_mlp(**params):
    return OnlineMLPClassifier((30,), **{"random_state": 0, "max_iter": 3} | params)


def test_a_matrix_is_summed_up_and_left_as_it_is_or_refused_where_its_flag_is_wrong():
    """SciPy keeps what it found of the indices, which may be others by now."""
    twice = sparse.csr_matrix((np.ones(4, np.float32), [3, 1, 1, 0], [0, 3, 4]), shape=(2, 5))
    mlp = make_mlp().fit(twice, [0, 1])
    assert np.array_equal(mlp.predict_proba(twice), mlp.predict_proba(twice.toarray()))
    assert not twice.has_canonical_format and twice.nnz == 4
    mlp, rows = make_mlp().fit(X, Y), sparse.csr_matrix(X)
    assert rows.has_canonical_format
    n = 10 * X.shape[1]
    rows.data = np.full(300 * n, 0.01, np.float32)
    rows.indices = np.zeros(300 * n, np.int32)
    rows.indptr = np.arange(0, 300 * n + 1, n, dtype=np.int32)
    for call in (mlp.predict, lambda rows: mlp.partial_fit(rows, Y), lambda rows: mlp.fit(rows, Y)):
        with pytest.raises(InputError, match="indices ascend"):
            call(rows)


@pytest.mark.parametrize(
    "kind, name, place, value",
    [
        ("csr", "indptr", 7, 2**30),
        ("csr", "indptr", -1, 0),
        ("csc", "indices", 7, 2**30),
        ("coo", "row", 7, 2**30),
    ],
)
def test_places_outside_of_a_matrix_are_refused(kind, name, place, value):
    """Before C code of SciPy reads them, as it does to convert the matrix or to sort indices."""
    mlp, wrong = make_mlp().fit(X, Y), sparse.csr_matrix(X.astype(np.float64)).asformat(kind)
    getattr(wrong, name)[place] = value
    for call in (mlp.predict, lambda rows: mlp.partial_fit(rows, Y), lambda rows: mlp.fit(rows, Y)):
        with pytest.raises(ValueError, match=r"(?i)ind(ex|ices|ptr)"):
            call(wrong)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
def test_row_ends_whose_differences_overflow_are_refused(kind):
    """SciPy looks at the differences alone."""
    wrong = sparse.csr_matrix(np.eye(5))
    wrong.indptr = np.array([0, np.iinfo(kind).max, np.iinfo(kind).min, 5, 5, 5], kind)
    mlp = make_mlp().fit(np.eye(5), [0, 1, 0, 1, 0])
    for call in (mlp.predict, lambda rows: mlp.fit(rows, [0, 1, 0, 1, 0])):
        with pytest.raises(InputError, match=r"ind(ices|ptr)"):
            call(wrong)


def test_wide_rows_fit_into_little_memory():
    """As an array they would take 40 GB."""
    n, width = 10_000, 1_000_000
    indices = RNG.integers(0, 1000, (n, 20)) + np.arange(n)[:, None] % 2 * (width // 2)
    rows = sparse.csr_array(
        (np.ones(n * 20, np.float32), indices.ravel(), np.arange(0, n * 20 + 1, 20)),
        shape=(n, width),
    )
    mlp = OnlineMLPClassifier((8,), random_state=0, max_iter=2).fit(rows, np.arange(n) % 2)
    assert mlp.score(rows[:100], np.arange(100) % 2) > 0.9
