"""All members of a committee at once: each a chain of tasks, whose results come home.

Every task gets the result of the one before from the worker that has it. All tasks of all members
are in Dask's hands from the beginning, so no worker waits for this process. A result is saved in
the run of its member as soon as it is here.

When a worker is lost, Dask runs its tasks again elsewhere. If the state on which a task depends is
lost with it, Dask would compute the whole chain from its beginning. But the state is at home then,
or the one before it. So the rest of the chain is handed in anew from there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import logging
import secrets
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from mlpcore import backends
from mlpcore.cluster.segment import (
    GPU,
    Environment,
    Job,
    Result,
    described,
    environment,
    measure,
    missing_data,
    train_segment,
)
from mlpcore.cpu import available_cores
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from mlpcore.store.committee import CommitteeFolder, Member
from mlpcore.store.run_folder import Run, holds_run
from mlpcore.training.state import TrainingState

if TYPE_CHECKING:
    from distributed import Client, Future

#: A task should take about so long.
TASK_SECONDS = 60

#: How long to try to reach a scheduler.
CONNECT_SECONDS = 5

#: How often to look whether a state is lost.
LOOK_SECONDS = 1.0


class LostScheduler(InputError):
    """The connection to the scheduler is gone; what came home is saved."""


class Follower(Protocol):
    """Is told what happens, in the process that collects the results."""

    def say(self, text: str) -> None:
        """A line for the user."""

    def epoch(self, name: str, epoch: int, worker: str) -> None:
        """A member has done an epoch, on a worker."""

    def home(self, name: str, state: TrainingState, worker: str) -> None:
        """A state of a member is saved."""


def train_members(
    committee: CommitteeFolder,
    data: Dataset,
    follower: Follower,
    *,
    scheduler: str | None = None,
    workers: int = 1,
    threads: int | None = None,
    mixed: bool = False,
    epochs_per_task: int | None = None,
) -> int:
    """Trains the members of a committee to their end, on a cluster.

    The weights are those of the same members trained one after another by one process, bit for bit.
    Called in the main thread, where no event loop runs.

    Parameters
    ----------
    scheduler
        The address of a running scheduler, ``tcp://host:8786``. Without it there is a local cluster
        of processes that listens on the loopback interface alone.
    workers
        The processes of a local cluster.
    threads
        Threads of a task: by default the cores, shared out among a local cluster's processes, and
        one on another cluster.
    mixed
        Whether workers may compute by other instruction sets than that of the settings.
    epochs_per_task
        By default as many as take about a minute.

    Returns
    -------
    int
        0, or the number of the signal, SIGINT or SIGTERM, that stopped it.

    Raises
    ------
    InputError
        When the scheduler cannot be reached, a worker does not fit, a folder cannot be used, or
        training fails. `LostScheduler` when the scheduler goes away. What came home is saved.
    """
    CommClosedError = require_distributed().comm.CommClosedError
    local, config = scheduler is None, committee.members[0].config
    if local and config.backend == "cuda" and workers > 1:
        raise InputError(f"{workers} workers on the GPU of this machine: expected 1")
    at_once = backends.networks_at_once(config.backend, config.schedule)
    threads = threads or (max(1, available_cores() // workers) if local else 1)
    job = Job(environment(), threads, mixed, f"mlpcore-{secrets.token_hex(4)}")

    async def run() -> int:
        async with connected(scheduler, workers, at_once) as client:
            follower.say(f"dashboard: {client.dashboard_link}")
            resources = {GPU: 1 / at_once} if config.backend == "cuda" else None
            training = _Training(committee, data, client, job, follower, epochs_per_task, resources)
            try:
                return await _until_signal(training.run())
            except (CommClosedError, concurrent.futures.CancelledError):
                raise LostScheduler(
                    f"the scheduler at {scheduler or 'this machine'}, or what it held, is lost: "
                    "what came home is saved, and the same command goes on"
                ) from None

    return asyncio.run(run())


def require_distributed() -> Any:
    """Dask's package `distributed`; an InputError when it cannot be imported."""
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            f"a cluster needs the package {error.name}, which is not installed: expected mlpcore's "
            "extra 'cluster' (pip install 'mlpcore[cluster]')"
        ) from None
    return distributed


def check_scheduler(address: str) -> None:
    """Raise InputError unless there is a scheduler at an address."""
    distributed = require_distributed()

    async def reach() -> None:
        options = distributed.Security().get_connection_args("client")
        comm = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **options)
        await comm.close()

    try:
        asyncio.run(reach())
    except MemoryError:  # for a message whose length is that of something else
        raise InputError(f"no Dask scheduler at {address}: another protocol answers") from None
    except (OSError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"no Dask scheduler at {address}: {reason}") from None


@contextlib.asynccontextmanager
async def connected(scheduler: str | None, workers: int, at_once: int = 1) -> AsyncIterator[Client]:
    """A client of a scheduler, or of a new local cluster that ends with it.

    A worker of a local cluster trains `at_once` members at once, and may use the GPU.
    """
    import dask
    from distributed import Client, LocalCluster

    async with contextlib.AsyncExitStack() as stack:
        # A lost connection is an error of one line, without the client's own.
        for name in "client", "batched":
            log = logging.getLogger(f"distributed.{name}")
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.CRITICAL)
        # A state of a resumed member travels with its task, so that it cannot be lost.
        large = dask.config.set({"distributed.admin.large-graph-warning-threshold": "2GB"})
        stack.enter_context(large)
        if scheduler is None:
            where: Any = await stack.enter_async_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=at_once,
                    resources={GPU: 1},
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=None,
                    silence_logs=logging.ERROR,
                    asynchronous=True,
                )
            )
        else:
            where = scheduler
        client = Client(where, asynchronous=True, timeout=CONNECT_SECONDS)
        await stack.enter_async_context(client)
        yield client


async def _until_signal(training: Any) -> int:
    """Awaits a training; a signal cancels it."""
    loop, task, signals = asyncio.get_running_loop(), asyncio.ensure_future(training), []

    def stop(number: int) -> None:
        signals.append(number)
        task.cancel()

    numbers = signal.SIGINT, signal.SIGTERM
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not signals:
            raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
    return signals[0] if signals else 0


class _Training:
    """The chains of all members."""

    def __init__(
        self,
        committee: CommitteeFolder,
        data: Dataset,
        client: Client,
        job: Job,
        follower: Follower,
        epochs_per_task: int | None,
        resources: dict[str, float] | None,
    ):
        self.committee, self.dataset, self.client = committee, data, client
        self.job, self.follower, self.step = job, follower, epochs_per_task
        self.resources = resources

    async def run(self) -> None:
        """Trains all members."""
        config = self.committee.members[0].config
        await self._check_workers(config.backend)
        self.data = await self._share_data()
        self.client.subscribe_topic(self.job.topic, self._on_event)
        if self.step is None:
            submit = self.client.submit
            seconds = await submit(measure, config, self.data, self.job, resources=self.resources)
            self.step = max(1, round(TASK_SECONDS / seconds))
        async with contextlib.AsyncExitStack() as stack:
            opened = [(member, *self._open(member, stack)) for member in self.committee.members]
            tasks = [asyncio.ensure_future(self._train(*each)) for each in opened]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _check_workers(self, backend: str) -> None:
        """Raises InputError unless all workers that there are may train."""
        answers = await self.client.run(described, on_error="return")
        if not answers:
            self.follower.say("no workers yet: waiting for one")
            await self.client.wait_for_workers(1)
            answers = await self.client.run(described, on_error="return")
        found: dict[str, Environment] = {}
        for address, answer in answers.items():
            if isinstance(answer, BaseException):
                reason = " ".join(str(answer).split())
                raise InputError(f"worker {address} cannot run this mlpcore: {reason}")
            worker, has_gpu = answer
            if has_gpu or not self.resources:
                found[address] = worker
        if not found:
            raise InputError(
                f"no worker has the resource {GPU}, which the backend cuda wants: expected "
                f"dask worker --resources {GPU}=1"
            )
        for address, worker in found.items():
            reason = self.job.expected.refusal(worker, backend, self.job.mixed)
            if reason:
                raise InputError(f"worker {address} {reason}")
        others = [address for address in found if backend not in found[address].backends]
        if others:
            self.follower.say(
                f"note: --mixed: {len(others)} of {len(found)} workers cannot run {backend}; "
                "another run may have other bits"
            )

    async def _share_data(self) -> DataSummary | Future:
        """The data of a task: their summary where workers find them, else the data, sent once."""
        summary = self.committee.data
        missing = await self.client.run(missing_data, summary)
        reason = next(filter(None, missing.values()), "")
        if not reason:
            return summary
        self.follower.say(f"the data are sent to the workers, which do not find them: {reason}")
        return await self.client.scatter(self.dataset, broadcast=True, hash=False)

    def _on_event(self, event: tuple[float, dict[str, Any]]) -> None:
        values = event[1]
        self.follower.epoch(values["member"], values["epoch"], values["worker"])

    def _open(self, member: Member, stack: contextlib.AsyncExitStack) -> tuple[Run, TrainingState]:
        """The run of a member, locked, and the state in which it is."""
        folder, config = self.committee.run_folder(member), member.config
        if holds_run(folder):
            self.committee.check_run(member)
            run = Run.open(folder)
            stack.callback(run.close)
            return run, run.load()
        sizes = self.committee.data.layer_sizes(config.hidden_layers)
        state = TrainingState(config.new_network(sizes))
        run = Run.create(folder, config, self.dataset, f"{config.backend}, on a cluster", state)
        stack.callback(run.close)
        return run, state

    def _submit(self, member: Member, state: TrainingState) -> list[tuple[int, Future]]:
        """The rest of a member's training: the epochs after which tasks end, and their results."""
        assert self.step is not None
        config, chain, token = member.config, [], secrets.token_hex(4)
        before: Any = state
        for begin in range(state.epoch, config.epochs, self.step):
            until = min(begin + self.step, config.epochs)
            before = self.client.submit(
                train_segment,
                config,
                before,
                until,
                self.data,
                self.job,
                member.name,
                key=f"{member.name}-{begin + 1}-{until}-{token}",
                priority=-begin,  # the member that is behind comes first
                resources=self.resources,
            )
            chain.append((until, before))
        return chain

    async def _train(self, member: Member, run: Run, state: TrainingState) -> None:
        """Brings the results of a member home, one after another."""
        chain, last = self._submit(member, state), None
        while chain:
            future = chain[0][1]
            result = await self._fetch(future, last)
            if result is None:  # the state before it is lost
                await self.client.cancel([each for _, each in chain], force=True)
                chain, last = self._submit(member, state), None
                continue
            # Epochs that Dask has computed again have other times than at home.
            history = [*state.history, *result.state.history[state.epoch :]]
            state, run.machine = dataclasses.replace(result.state, history=history), result.machine
            run.save(state)
            self.follower.home(member.name, state, result.worker)
            last = future
            del chain[0]

    async def _fetch(self, future: Future, last: Future | None) -> Result | None:
        """A result; None when that of the task before, which is at home, is lost on all workers."""
        from distributed import KilledWorker

        fetching = _fetching(future)
        while True:
            await asyncio.wait({fetching}, timeout=LOOK_SECONDS)
            if fetching.cancelled():  # Dask had joined it with another's, which ended
                fetching = _fetching(future)
            elif fetching.done():
                try:
                    return fetching.result()
                except KilledWorker as error:
                    reason = " ".join(str(error).split())
                    raise InputError(f"workers died of a task: {reason}") from None
            elif last is not None and last.status == "lost" and future.status != "finished":
                return None


def _fetching(future: Future) -> asyncio.Task[Result]:
    """Begins to fetch a result. It may be left alone, but not cancelled: see `_Training._fetch`."""

    def retrieve(task: asyncio.Task[Result]) -> None:
        if not task.cancelled():
            task.exception()  # which asyncio would complain of otherwise

    task: asyncio.Task[Result] = asyncio.ensure_future(future.result())
    task.add_done_callback(retrieve)
    return task
