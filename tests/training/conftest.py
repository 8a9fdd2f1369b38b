"""Every backend, the oracle included, with two threads where there are threads."""

import pytest

from emulated import BACKENDS, get_backend


@pytest.fixture(params=BACKENDS)
def backend(request):
    return get_backend(request.param, threads=2)
