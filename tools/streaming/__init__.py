"""What `tools/streams.py` measures."""

#: Samples whose accuracy is a point of the curve over time.
WINDOW = 250
