"""The random numbers: published vectors, and what is drawn from them."""

import numpy as np
import pytest

from mlpcore import philox

#: Known answers of Random123 for philox4x32-10: words of the counter, the key and the result.
KNOWN_ANSWERS = [
    f"{'00000000 ' * 6} 6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    f"{'ffffffff ' * 6} 408f276d 41c83b0e a20bc7c6 6d5451fd",
    "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1",
]


@pytest.mark.parametrize("known", KNOWN_ANSWERS)
def test_known_answers(known):
    words = [int(word, 16) for word in known.split()]
    key = words[4] | words[5] << 32
    for each in (key, np.uint64(key)):
        assert philox.philox4x32(words[:4], each).tolist() == words[6:]


def test_initial_values_of_many_weights():
    """The last block is number 2^16, which a draw of its own begins with."""
    last = philox.to_uniform(philox.philox4x32([2**16, 7, 0, philox.WEIGHTS], 3))
    assert np.array_equal(philox.initial_values(2**18 + 4, 3, 7)[-4:], last.astype(np.float32))
