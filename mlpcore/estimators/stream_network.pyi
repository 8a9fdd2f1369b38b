from collections.abc import Hashable, Iterable
from typing import Any

from mlpcore.network.network import Network
from mlpcore.network.standardisation import Standardisation

__all__ = ["StreamNetwork"]

class StreamNetwork:
    @property
    def columns(self) -> dict[Hashable, int]: ...
    @property
    def labels(self) -> list[Any]: ...
    def __init__(
        self, hidden: tuple[int, ...], seed: int, labels: Iterable[Hashable] | None = ()
    ) -> None: ...
    def check(self, samples: Iterable[tuple[Any, Any]], max_features: int) -> None: ...
    def learn(
        self, x: Any, y: Any, rate: float, weight: float, max_features: int, balanced: bool
    ) -> float: ...
    def predict(self, x: Any) -> Any: ...
    @property
    def found(
        self,
    ) -> (
        tuple[Network, Standardisation, tuple[float, float], tuple[str, ...], list[Any]] | None
    ): ...
