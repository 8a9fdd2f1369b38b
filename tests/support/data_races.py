"""Every threaded kernel once, for ThreadSanitizer: `make sanitize` runs this, pytest does not."""

from c_operations import SIZES, operations
from mlpcore import Network
from mlpcore.backends import simd


def main():
    simd._at_most_cores = int  # three threads, whatever the number of cores
    for kind in (("tanh", "squared"), ("relu", "cross-entropy")):
        for _, operation in operations():
            operation(Network(SIZES, 1, *kind, "he"))
    print("no data races")


if __name__ == "__main__":
    main()
