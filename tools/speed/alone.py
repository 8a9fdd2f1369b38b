"""A training in a process of its own, from Enter to its end: imports, loading and evaluations too.

Ours is `mlpcore train` with its report. A peer's process trains and evaluates once: `train_alone`.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

TOOLS = Path(__file__).parents[1]
TRAIN_PEER = "import sys; from speed.alone import train_alone; train_alone(*sys.argv[1:])"


def seconds_alone(
    name: str, recipe: str | None, settings: dict[str, object], data: Sequence[str]
) -> float:
    """The seconds of a process that trains as the peer `name` does, or by a recipe of ours.

    `settings` are options of `mlpcore train` and their values, `data` those that name the data.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
        command = ["-c", TRAIN_PEER, name, *map(str, settings.values()), *data]
        if recipe:
            ours = ["-m", "mlpcore", "train", "--recipe", recipe, "--out", f"{folder}/run"]
            command = [*ours, *options, *data]
        paths = [str(TOOLS), str(TOOLS.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        begin = time.perf_counter()
        subprocess.run([sys.executable, *command], env=environment, capture_output=True, check=True)
        return time.perf_counter() - begin


def train_alone(name: str, arch: str, epochs: str, threads: str, seed: str, *data: str) -> None:
    """Train as a peer does, and print its test error; `data` are options that name the data."""
    from mlpcore.data import dataset
    from mlpcore.network.architecture import parse_hidden_layers
    from speed.peers import LEARNERS
    from speed.peers.base import Task

    named = dict(zip(data[::2], data[1::2]))
    loaded = dataset.load(named.get("--data"), name=named.get("--dataset"))
    learner = next(each for each in LEARNERS if each.name == name)
    task = Task(loaded, parse_hidden_layers(arch), int(threads))
    print(learner.train(task, int(epochs), int(seed), learner.rate(int(epochs))))
