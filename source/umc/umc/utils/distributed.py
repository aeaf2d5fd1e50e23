# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Several processes (ranks) that train one policy: who they are, how they agree, and how they end together.

rsl_rl averages gradients, KL divergence and learning rate over the ranks, and :class:`umc.models.MaskedNormalization`
its statistics. Here is the rest: the backend, and what all ranks do at the same moment (stop, save) or alike (folder,
checkpoint to start from). torch is imported only once there are several ranks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from umc.utils.errors import UmcError

SEED_STRIDE = 100_003
"""From one rank's seed to the next one's. Greater than every seed that ``--seed -1`` draws, so that ranks of different
runs share none (with Isaac Lab's stride of 1, rank 1 of seed 42 draws what rank 0 of seed 43 does)."""

LARGEST_SEED = 2**32 - 1
"""NumPy takes seeds up to this."""

VARIABLES = re.compile(r"(LOCAL_|GROUP_|ROLE_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)|TORCHELASTIC_.*")
"""Environment variables that torchrun sets."""

TIMEOUT = datetime.timedelta(minutes=10)
"""How long a rank waits for the others, NCCL's own default. It has to cover the first compilation of Warp's kernels on
the slowest machine; a process that dies is noticed at once."""

LOST_ERRORS = re.compile(r"gloo|nccl|connection (closed|reset)|socket|broken pipe|timed? ?out", re.IGNORECASE)
"""torch's errors about other ranks; they are plain RuntimeErrors on gloo."""

AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Set to ``True`` by torchrun where it keeps the rendezvous store itself."""

LAUNCHER = "python -m torch.distributed.run --nproc_per_node 2"
"""How several processes are started; the same as ``torchrun``."""


class SharedError(UmcError):
    """A user's mistake that every rank knows of; rank 0 prints it."""


class RankLostError(Exception):
    """Another rank has died or does not answer."""

    def __init__(self, error: BaseException) -> None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        super().__init__(f"another process of the run is gone ({lines[0][:160]})")


@dataclasses.dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    """Its number, counted from 0 over all machines."""
    local_rank: int = 0
    """Its number on its machine."""
    world_size: int = 1
    """Number of processes on all machines."""

    @property
    def is_distributed(self) -> bool:
        """Whether there are others."""
        return self.world_size > 1

    @property
    def is_main(self) -> bool:
        """Whether this process prints and writes for all."""
        return self.rank == 0

    def first_env(self, num_envs: int) -> int:
        """Return the number of this rank's env 0 among the envs of all ranks, which have ``num_envs`` each.

        Faults are drawn by it: two processes of 64 envs encounter the faults of one with 128.
        """
        return self.rank * num_envs

    def seed(self, seed: int) -> int:
        """Return this rank's seed of simulation and action noise for a run's seed, which is that of rank 0."""
        return (seed + self.rank * SEED_STRIDE) % (LARGEST_SEED + 1)


def ranks_from_env() -> Ranks:
    """Read torchrun's environment variables; without them this process is the only one."""
    numbers = {}
    for name, default in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
        text = os.environ.get(name) or default
        if not text.isdecimal():
            raise UmcError(f"the environment variable {name} is {text!r}, no number; let torchrun set it")
        numbers[name] = int(text)
    rank, local_rank, world_size = numbers.values()
    if world_size < 1 or not (local_rank <= rank < world_size):
        raise UmcError(
            f"the environment variables RANK={rank}, LOCAL_RANK={local_rank}, WORLD_SIZE={world_size} contradict each "
            "other; let torchrun set them"
        )
    return Ranks(rank, local_rank, world_size)


def num_gpus() -> int:
    """Return how many GPUs torch can use; its ``device_count`` also counts those with too old a driver."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def without_ranks(variables: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables for a child that is not a rank."""
    return {name: value for name, value in variables.items() if not VARIABLES.fullmatch(name)}


def check_distributed_flag(wanted: bool, ranks: Ranks) -> None:
    """Raise UmcError for ``--distributed`` without a launcher, and for several ranks without ``--distributed``."""
    if ranks.is_distributed and not wanted:
        raise UmcError(
            f"{ranks.world_size} processes were started (WORLD_SIZE); add --distributed if they are to train together"
        )
    if wanted and "TORCHELASTIC_RUN_ID" not in os.environ and not ranks.is_distributed:
        raise UmcError(f"--distributed needs a launcher: {LAUNCHER} scripts/train.py --distributed ...")


def connected() -> bool:
    """Return whether this process is connected to other ranks."""
    dist: Any = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_initialized()


def connect(ranks: Ranks, purpose: str) -> None:
    """Connect the ranks; a single one does nothing.

    A Stage 1 that is trained first connects at the same address under another ``purpose``.
    """
    if not ranks.is_distributed or connected():
        return
    import torch
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    # CPU tensors (decisions) go by gloo, CUDA tensors (gradients) by NCCL
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    with catch_lost_ranks():
        store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
        store = dist.PrefixStore(f"umc/{purpose}", store)  # pyright: ignore[reportPrivateImportUsage]
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=TIMEOUT)


def disconnect() -> None:
    """Leave the other ranks."""
    if connected():
        import torch.distributed as dist

        dist.destroy_process_group()


def check_stage1_possible(ranks: Ranks) -> None:
    """Raise UmcError where the processes of a Stage 1 that is trained on the way could not meet.

    torchrun itself keeps the address at which processes meet. Of processes that others started (srun, mpirun) the first
    keeps it, and its child would have to open the same port once more.
    """
    if ranks.is_distributed and os.environ.get(AGENT_STORE) != "True":
        raise UmcError(
            "there is no Stage 1 to start from, and processes that torchrun did not start cannot train it on the way; "
            "train Stage 1 first, or start with torchrun"
        )


def check_gpus(device: str) -> None:
    """Raise SharedError if two ranks share a GPU, which NCCL does not connect; all ranks call this at the same moment.

    GPUs are compared by UUID: their number tells nothing where a scheduler shows each process its own.
    """
    import torch

    mine = None if device == "cpu" else str(torch.cuda.get_device_properties(device).uuid)
    gpus = [gpu for gpu in all_gather(mine) if gpu is not None]
    if len(set(gpus)) < len(gpus):
        raise SharedError(
            f"{len(gpus)} processes have {len(set(gpus))} GPUs in all, and each needs one of its own; give torchrun "
            "--nproc_per_node the GPUs of a machine, or --device cpu"
        )


@contextlib.contextmanager
def catch_lost_ranks() -> Iterator[None]:
    """Turn torch's many errors about a lost rank into :class:`RankLostError`; other errors pass."""
    import torch.distributed as dist

    try:
        yield
    except dist.DistError as error:
        raise RankLostError(error) from error
    except RuntimeError as error:
        if not ranks_from_env().is_distributed or LOST_ERRORS.search(str(error)) is None:
            raise
        raise RankLostError(error) from error


def broadcast_object[T](value: T) -> T:
    """Return the value of rank 0, made of plain values, on every rank."""
    return all_gather(value)[0]


def all_gather[T](value: T) -> list[T]:
    """Return the values of all ranks, made of plain values and CPU tensors, in the order of ranks."""
    if not connected():
        return [value]
    import torch.distributed as dist

    values: list[Any] = [None] * dist.get_world_size()
    with catch_lost_ranks():
        dist.all_gather_object(values, value)
    return values


def all_reduce_max(*numbers: int) -> list[int]:
    """Return the maximum over all ranks of each number."""
    return [max(values) for values in zip(*all_gather(numbers), strict=True)]


def run_on_all_ranks[T](step: Callable[[], T]) -> T:
    """Call a function on every rank, raising SharedError on all if it fails on one; it must not wait for others."""
    if not connected():
        return step()
    result, mine = None, None
    try:
        result = step()
    except UmcError as error:
        mine = str(error)
    errors = {rank: error for rank, error in enumerate(all_gather(mine)) if error is not None}
    if errors:
        rank, text = next(iter(errors.items()))
        raise SharedError(text if rank == 0 else f"{text} (process {rank})")
    return result  # pyright: ignore[reportReturnType]
