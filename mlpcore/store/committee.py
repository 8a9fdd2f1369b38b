"""A committee in a folder: a document that fixes its members, and the run of each.

| file | content |
|---|---|
| ``committee.json`` | the data, and each member's name and settings |
| ``NAME/`` | the run of the member of this name (`mlpcore.store.run_folder`) |

The document is written before anything is trained, and has the fields of `Document`.

`mlpcore.commands.committee` adds ``report.md`` and ``figures``, which nothing reads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, structs

from mlpcore.checks import Record, check_whole
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.files import Lock, check_no_link, make_folder, remove_temporary
from mlpcore.network.architecture import format_hidden_layers
from mlpcore.store.documents import read_document, write_document
from mlpcore.store.run_folder import Run, check_output, holds_run, read_settings
from mlpcore.training.config import TrainingConfig
from mlpcore.typing import StrPath
from mlpcore.version import __version__

DOCUMENT = "committee.json"

#: The most members of a committee.
MAX_MEMBERS = 1000


class Member(Record, frozen=True):
    """A member of a committee: the name of its folder, and its settings."""

    name: Annotated[str, Meta(pattern=r"^\w[\w-]*\Z")]
    config: TrainingConfig


class Document(Record, frozen=True):
    """The content of ``committee.json``. The first two are for human readers."""

    library: str
    version: str
    data: DataSummary
    members: tuple[Member, ...]


def plan(configs: Sequence[TrainingConfig], n: int = 1) -> tuple[Member, ...]:
    """The members of a committee of several architectures, `n` of each.

    `configs` has the settings of each architecture. The first member has the seed of its own, and
    each of the following ones the next. An InputError when an architecture comes twice, or there
    are too many members.
    """
    check_whole("members", n * len(configs), 1, MAX_MEMBERS)
    names = [format_hidden_layers(config.hidden_layers) for config in configs]
    if len(set(names)) < len(names):
        found = " ".join(names)
        raise InputError(f"--arch {found}: expected each once; --members trains several of each")
    members: list[Member] = []
    for name, config in zip(names, configs):
        for k in range(1, n + 1):
            folder = name.replace(",", "-") + (f"-{k}" if n > 1 else "")
            seed = config.seed + len(members)
            members.append(Member(folder, structs.replace(config, seed=seed)))
    return tuple(members)


def _flat(config: TrainingConfig) -> dict[str, object]:
    """The settings by their names in words, and the deformation's among them."""
    values = structs.asdict(config)
    values |= structs.asdict(values.pop("deformation"))
    return {name.replace("_", " "): value for name, value in values.items()}


@dataclass(frozen=True)
class CommitteeFolder:
    """The folder of a committee, with the data of all members."""

    folder: Path
    data: DataSummary
    members: tuple[Member, ...]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for training, and write the document unless it is there.

        InUse when another process has the lock; an InputError when the folder holds a run or
        another committee, or cannot be written.
        """
        make_folder(self.folder)
        with contextlib.closing(Lock(self.folder)) as lock:
            if holds_committee(self.folder):
                CommitteeFolder.open(self.folder)._check_same(self)
            else:
                check_output(self.folder)
                document = Document("mlpcore", __version__, self.data, self.members)
                write_document(self.folder / DOCUMENT, document, lock)
            remove_temporary(self.folder, [DOCUMENT])
            yield

    @classmethod
    def open(cls, folder: StrPath) -> CommitteeFolder:
        """Read the document of a committee; an InputError when it is damaged."""
        path = Path(folder, DOCUMENT)
        document = read_document(path, Document)
        names = {each.name for each in document.members}
        if not 0 < len(names) == len(document.members):
            raise InputError(f"{shown(path)} is damaged: expected members of different names")
        return cls(Path(folder), document.data, document.members)

    def _check_same(self, asked: CommitteeFolder) -> None:
        """Raise InputError unless another command asks for these members and data."""
        name, expected = shown(self.folder), "expected the same command as at first, or a new --out"
        if [each.name for each in asked.members] != [each.name for each in self.members]:
            found = ", ".join(each.name for each in self.members)
            raise InputError(f"{name} holds a committee of the members {found}: {expected}")
        for theirs, ours in zip(asked.members, self.members):
            wanted, has = _flat(theirs.config), _flat(ours.config)
            differ = [f"{key} {has[key]}" for key in has if has[key] != wanted[key]]
            if differ:
                raise InputError(
                    f"{name} holds a committee with {', '.join(differ)} for the member "
                    f"{ours.name}: {expected}"
                )
        self.data.check_same(asked.data, f"the committee in {name}")

    def run_folder(self, member: Member) -> Path:
        """The folder of a member's run."""
        return self.folder / member.name

    def open_run(self, member: Member, data: Dataset, backend: str) -> Run:
        """The run of a member, which begins if there is none; the caller closes it.

        `backend` is the line that describes the backend, for human readers. A link to a run that is
        elsewhere is refused with an InputError.
        """
        folder = self.run_folder(member)
        check_no_link(folder)
        if holds_run(folder):
            self.check_run(member)
            return Run.open(folder)
        return Run.create(folder, member.config, data, backend)

    def check_run(self, member: Member) -> None:
        """Raise InputError unless a member's run, which exists, has the member's settings."""
        folder = self.run_folder(member)
        config, data = read_settings(folder)
        if config != member.config or data.sha256 != self.data.sha256:
            raise InputError(
                f"{shown(folder)} is a run with different settings or data than {DOCUMENT} "
                "lists for this member: expected the run that the committee began"
            )


def holds_committee(folder: StrPath) -> bool:
    """Tell if a folder is that of a committee."""
    return os.path.lexists(Path(folder, DOCUMENT))


def with_members(paths: Iterable[StrPath]) -> list[Path]:
    """The paths, with the runs of its members in place of each committee's folder."""
    found: list[Path] = []
    for path in map(Path, paths):
        if not holds_committee(path):
            found.append(path)
            continue
        committee = CommitteeFolder.open(path)
        for member in committee.members:
            folder = committee.run_folder(member)
            if not holds_run(folder):
                expected = "expected a whole committee; to resume, repeat the command that began it"
                raise InputError(f"{shown(folder)} is not trained yet: {expected}")
            committee.check_run(member)
            found.append(folder)
    return found
