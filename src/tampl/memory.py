"""How much memory there is to take: of the machine, or of the container or job it runs in."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["available_memory"]

_CGROUP = Path("/sys/fs/cgroup")

# Where the system does not say how much memory it has.
_UNKNOWN = 2**33


def available_memory() -> int:
    """Bytes that could be allocated now without swapping."""
    return min([_machine_memory(), *_group_memory()])


def _machine_memory() -> int:
    with suppress(OSError, StopIteration, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        entry = next(line for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(entry.split()[1])
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _UNKNOWN


def _group_memory() -> list[int]:
    """What the control group of this process leaves, where there is one with a limit."""
    with suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        # Pages of files count as used, and are given back when they are needed.
        return [max(0, limit - used + int(stat.get("inactive_file", 0)))]
    return []
