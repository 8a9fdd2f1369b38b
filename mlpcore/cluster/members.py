"""All members of a committee at once, each in tasks of about a minute.

The state to which a task comes is saved here, and is an argument of the member's next task. So
whatever a cluster loses, one task of a member is computed again. Were the argument the task before,
Dask would compute all the member's tasks again, from its first epoch.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import Protocol, TypeAlias

import dask
import distributed
from distributed import Client, Future, KilledWorker, LocalCluster, as_completed
from distributed.comm import CommClosedError

from mlpcore.checks import check_whole
from mlpcore.cluster.segment import GPU, as_given, source, train_segment
from mlpcore.cpu import available_cores
from mlpcore.data.dataset import Dataset
from mlpcore.errors import InputError, printable, shown
from mlpcore.stopping import interrupts_kept_from_children, stopping
from mlpcore.store.committee import CommitteeFolder, Member
from mlpcore.store.run_folder import Run
from mlpcore.training.state import TrainingState

#: A task should take about so long.
TASK_SECONDS = 60.0

#: How long to try to reach a scheduler; one on a busy machine may need ten seconds to answer.
CONNECT_SECONDS = 30

#: Members with epochs left, their runs, and the states of these.
Unfinished: TypeAlias = list[tuple[Member, Run, TrainingState]]


class Progress(Protocol):
    """Is told what happens, in the process that saves the results."""

    def print(self, text: str) -> None:
        """A line for the user."""

    def saved(self, name: str, state: TrainingState, worker: str) -> None:
        """The state to which a worker has trained a member is saved."""


def train_members(
    committee: CommitteeFolder,
    data: Dataset,
    progress: Progress,
    *,
    scheduler: str | None = None,
    workers: int = 1,
    threads: int | None = None,
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

    Returns
    -------
    int
        0, or the number of the signal, SIGINT or SIGTERM, that stopped it.

    Raises
    ------
    InputError
        When a worker is not compatible, a folder cannot be used, training fails, or the scheduler
        is lost. What was computed before is saved.
    """
    backend = committee.members[0].config.backend
    if scheduler is None and workers > 1 and backend == "cuda":
        raise InputError(f"{workers} workers on the GPU of this machine: expected 1")
    threads = threads or (1 if scheduler else max(1, available_cores() // workers))
    with contextlib.ExitStack() as stack:
        left = []
        for member in committee.members:
            run = committee.open_run(member, data, f"{backend}, on a cluster")
            stack.callback(run.close)
            state = run.load()
            if state.epoch < member.config.epochs:
                left.append((member, run, state))
        return asyncio.run(_train(left, data, threads, progress, scheduler, workers)) if left else 0


def check_scheduler(address: str) -> None:
    """Raise InputError unless there is a scheduler at an address."""

    async def reach() -> None:
        # Dask would try again until the end where there is no such host, or nobody listens.
        host, port = distributed.comm.get_address_host_port(address)
        check_whole("port", port, 1, 65_535)
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        options = distributed.Security().get_connection_args("client")
        comm = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **options)
        await comm.close()

    try:
        asyncio.run(asyncio.wait_for(reach(), CONNECT_SECONDS + 1))
    # No text: something answers that knows nothing of Dask, or a message has an absurd length.
    except (asyncio.TimeoutError, MemoryError, OSError, TypeError, ValueError) as error:
        reason = printable(str(error)) or f"no answer of one within {CONNECT_SECONDS} seconds"
        raise InputError(f"no Dask scheduler at {shown(address)}: {reason}") from None


@contextlib.asynccontextmanager
async def _connected(scheduler: str | None, workers: int) -> AsyncIterator[Client]:
    """A client of a scheduler, or of a new local cluster that ends with it."""
    async with contextlib.AsyncExitStack() as stack:
        # A lost connection is an error of one line, without the client's own.
        for name in "client", "batched":
            log = logging.getLogger(f"distributed.{name}")
            stack.callback(log.setLevel, log.level)
            log.setLevel(logging.CRITICAL)
        # Data and states are arguments of tasks, so that they cannot be lost.
        large = dask.config.set({"distributed.admin.large-graph-warning-threshold": "16GB"})
        stack.enter_context(large)
        cluster = scheduler
        if cluster is None:
            stack.enter_context(interrupts_kept_from_children())
            cluster = await stack.enter_async_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    resources={GPU: 1},
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=None,
                    silence_logs=logging.CRITICAL + 1,  # what fails is an error of one line
                    asynchronous=True,
                )
            )
        client = Client(cluster, asynchronous=True, timeout=CONNECT_SECONDS)
        yield await stack.enter_async_context(client)


async def _train(
    left: Unfinished,
    data: Dataset,
    threads: int,
    progress: Progress,
    scheduler: str | None,
    workers: int,
) -> int:
    """Trains these members on a cluster until they are done or a signal comes; returns its number.

    Without a signal that is 0.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    with stopping(lambda: loop.call_soon_threadsafe(task.cancel)) as signals:
        try:
            async with _connected(scheduler, workers) as client:
                progress.print(f"dashboard: {client.dashboard_link}")
                if not await client.nthreads():
                    progress.print("no workers yet: waiting for one")
                    await client.wait_for_workers(1)
                await _train_in_tasks(left, data, client, threads, progress)
        except asyncio.CancelledError:
            if not signals:
                raise
        except KilledWorker as error:
            raise InputError(f"a task killed its workers: {printable(str(error))}") from None
        except (CommClosedError, CancelledError):
            raise InputError(
                f"the scheduler at {scheduler or 'this machine'} is lost: what was computed "
                "before is saved, and the same command resumes"
            ) from None
    return signals[0] if signals else 0


async def _train_in_tasks(
    left: Unfinished, data: Dataset, client: Client, threads: int, progress: Progress
) -> None:
    """Trains these members to their end, or raises InputError where no worker has the GPU."""
    token = secrets.token_hex(4)  # tasks of another call have other names
    resources = {GPU: 1} if left[0][0].config.backend == "cuda" else None
    if resources:
        has = await client.run(lambda dask_worker: dask_worker.state.total_resources.get(GPU))
        if not any(has.values()):
            raise InputError(
                f"no worker has the resource {GPU}, which the backend cuda needs: expected "
                f"dask worker --resources {GPU}=1"
            )
    on_workers = client.submit(as_given, data, key=f"data-{token}", resources=resources)

    def submit(member: Member, state: TrainingState) -> Future:
        """The next task of a member: one epoch at first, then as many as take a minute."""
        seconds = max(1e-3, state.history[-1].seconds if state.history else TASK_SECONDS)
        until = min(state.epoch + max(1, round(TASK_SECONDS / seconds)), member.config.epochs)
        name = member.name.replace("-", "_")  # Dask's dashboard shows no number after a hyphen
        return client.submit(
            train_segment,
            source(),
            threads,
            member,
            on_workers,
            state,
            until,
            key=f"{name}-{state.epoch + 1}-{until}-{token}",
            priority=-state.epoch,  # the member that is behind comes first
            resources=resources,
        )

    training = {submit(member, state): (member, run) for member, run, state in left}
    completed = as_completed(list(training))
    async for future in completed:
        (member, run), result = training.pop(future), await future.result()
        if result.state.epoch < member.config.epochs:
            future = submit(member, result.state)
            training[future] = member, run
            completed.add(future)
        run.machine = result.machine
        run.save(result.state)
        progress.saved(member.name, result.state, result.worker)
