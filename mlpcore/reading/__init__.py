"""Pages of digits: their boxes or digits are found, put in order, and read.

What a network makes of one digit belongs in `mlpcore.inference`, and the format of a digit in
`mlpcore.data.digit`. OpenCV does the work on pixels.
"""

from mlpcore.reading.answers import ReadDigit
from mlpcore.reading.fields import Form
from mlpcore.reading.page import Page, read

__all__ = ["Form", "Page", "ReadDigit", "read"]
