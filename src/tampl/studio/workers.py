"""Threads that compute while the server listens, and drop what nobody waits for any more."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ..threads import available_cores

__all__ = ["Workers"]

Result = TypeVar("Result")

WAITING = 256
"""Jobs that may wait; with more the next ones would come too late for anyone."""

LONGEST_S = 60.0


class Workers:
    """One thread per core for forecasts, and as many for simulations.

    Simulations have threads of their own, so that a long one does not hold up forecasts.

    Attributes:
        begun: Jobs that were begun, for tests to see what was dropped.
    """

    def __init__(self) -> None:
        cores = available_cores()
        self.forecasts = ThreadPoolExecutor(cores, "forecast", initializer=_use_one_thread)
        self.simulations = ThreadPoolExecutor(cores, "simulation")
        self.begun = 0
        self._waiting = 0

    def close(self) -> None:
        """Drops what waits; what has begun ends by itself."""
        for pool in (self.forecasts, self.simulations):
            pool.shutdown(wait=False, cancel_futures=True)

    async def run(
        self, request: Request, job: Callable[[], Result], pool: Executor | None = None
    ) -> Result:
        """Runs a job while its client waits for it; a job whose client has gone never begins.

        Arguments:
            request: The request, whose body was read.
            job: What to do.
            pool: Where; with the forecasts by default.
        """
        if self._waiting >= WAITING:
            raise HTTPException(503, "the studio is busy; try again in a second")
        self._waiting += 1
        running = asyncio.get_running_loop().run_in_executor(
            pool or self.forecasts, self._begin, job
        )
        gone = asyncio.ensure_future(_wait_until_gone(request))
        try:
            both: set[asyncio.Future[Any]] = {running, gone}
            await asyncio.wait(both, timeout=LONGEST_S, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            if gone.done():
                raise HTTPException(499, "the client has gone")
            raise HTTPException(503, f"this took more than {LONGEST_S:.0f} s; ask for less")
        finally:
            self._waiting -= 1
            gone.cancel()
            running.cancel()

    def _begin(self, job: Callable[[], Result]) -> Result:
        self.begun += 1
        return job()


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _use_one_thread() -> None:
    # Several forecasts side by side are quicker than each on all cores in turn.
    torch.set_num_threads(1)
