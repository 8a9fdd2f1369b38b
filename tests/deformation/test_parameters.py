"""Parameters of the deformation by scikit-learn's names."""

import pytest
from sklearn.base import clone

from mlpcore import DeformationParameters, InputError

PARAMETERS = DeformationParameters(5, 4.0, 3.0, 2.0, [1, "seven"])


def test_get_params_gives_what_makes_the_same_one():
    assert DeformationParameters(**PARAMETERS.get_params()) == PARAMETERS == clone(PARAMETERS)
    assert clone(DeformationParameters()) == DeformationParameters()


def test_set_params_returns_another_one():
    found = PARAMETERS.set_params(alpha=7, gamma=0)
    assert found == DeformationParameters(5.0, 7.0, 3.0, 0.0, [1, "seven"])
    assert PARAMETERS.alpha == 4.0


def test_values_and_names_that_cannot_be():
    with pytest.raises(InputError, match=r"^alpha -1: expected"):
        PARAMETERS.set_params(alpha=-1)
    with pytest.raises(InputError, match=r"^deformation parameter alhpa: expected sigma, alpha"):
        PARAMETERS.set_params(alhpa=1)
