"""Dask clusters, where `simulate` and `compare` send their work (the extra `tampl[dask]`).

A cluster is named by the address of its scheduler, by the file that the scheduler writes
(`dask scheduler --scheduler-file FILE.json`), or by the word "local": processes on this machine.
Workers are started by Dask's own packages; docs/scaling.md has complete examples. When a worker
dies, Dask gives its job to another one; a job that kills several workers is given up.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..progress import say
from ..threads import available_cores

__all__ = ["LOCAL", "connected"]

LOCAL = "local"
"""The name of a cluster that is started on this machine, with one worker for each core."""

_PATIENCE_S = 20
"""How long a scheduler may take to answer."""


@contextmanager
def connected(address: str, *, workers: int | None = None) -> Iterator[Executor]:
    """The executor of a cluster, as long as the block lasts.

    Arguments:
        address: Address or file of a scheduler, or "local".
        workers: How many processes a local cluster has; one per available core by default.
    """
    try:
        from distributed import Client, KilledWorker, LocalCluster
    except ImportError as error:
        raise InputError(
            f"`dask` is {address!r}, which needs Dask: pip install 'tampl[dask]'"
        ) from error
    with ExitStack() as stack:
        place: dict[str, Any]
        if address == LOCAL:
            # Memory is bounded by the plan; Dask's own limit would stop a worker that is well.
            cluster = LocalCluster(
                n_workers=workers or available_cores(),
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
            )
            place = {"address": stack.enter_context(cluster)}
        elif address.endswith(".json"):
            if not Path(address).is_file():  # Dask would wait for it
                raise InputError(
                    f"`dask` is {address!r}, and there is no such file: start the scheduler with "
                    f"`dask scheduler --scheduler-file {address}`"
                )
            place = {"scheduler_file": address}
        else:
            place = {"address": address}
        try:
            client = stack.enter_context(Client(**place, timeout=_PATIENCE_S))
        except (OSError, ValueError) as error:
            raise InputError(
                f"`dask` is {address!r}, where no scheduler answers: give the address or the "
                'file of one, such as tcp://host:8786, or "local"'
            ) from error
        if not client.nthreads():
            say(f"the cluster at {address} has no worker yet; the work begins with the first")
        try:
            yield client.get_executor(pure=False)
        except KilledWorker as error:
            raise InputError(
                f"a job has ended several workers of the cluster at {address}: see their logs, "
                "and give them more memory"
            ) from error
