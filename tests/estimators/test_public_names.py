"""Properties of all estimators: lazy imports, pickles that last, and Dask."""

import pickle
import pickletools
import subprocess
import sys

import pytest

import mlpcore

ESTIMATORS = [mlpcore.ElasticDeformer, mlpcore.OnlineMLPClassifier, mlpcore.OnlineMLPRegressor]
ESTIMATORS += [mlpcore.StreamMLPClassifier, mlpcore.StreamMLPRegressor]


def test_importing_mlpcore_loads_no_heavy_library_and_starts_no_thread(tmp_path):
    """Nor does a folder of the same name hide it, as the one above a clone does: without a file."""
    (tmp_path / "mlpcore").mkdir()
    code = (
        "import sys, threading, mlpcore, mlpcore.backends;"
        "assert threading.active_count() == 1;"
        "assert not {'sklearn', 'matplotlib', 'pooch', 'cuda'} & set(sys.modules);"
        "mlpcore.OnlineMLPClassifier"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickles_do_not_name_the_module_and_dask_tells_what_was_learnt(estimator):
    """Otherwise Dask would take the predictions of one for those of another."""
    texts = {argument for _, argument, _ in pickletools.genops(pickle.dumps(estimator()))}
    assert "mlpcore" in texts
    assert estimator.__init__.__module__ not in texts
    tokenize = pytest.importorskip("dask.base").tokenize
    fitted = estimator()
    fitted.learnt_ = 3
    assert tokenize(fitted) != tokenize(estimator())
