"""Digits that the network in the package reads rightly and surely."""

import warnings

import numpy as np
from PIL import Image

import mlpcore
from pictures import DIGITS, LABELS

NETWORK = mlpcore.load("pretrained", threads=1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of one that hardly shows a digit
    SURE = NETWORK.predict_proba([Image.fromarray(digit) for digit in DIGITS[:300]])

#: One of each class.
CLEAR = [DIGITS[np.argmax(SURE[:, k] * (LABELS[:300] == k))] for k in range(10)]
