# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Several processes that train one policy: they find each other, agree on what to do, and end together.

rsl_rl averages gradients, KL divergence and learning rate over the processes, and
:class:`umc.models.MaskedNormalization` its statistics. Here is what is left: the backend, and everything that all have
to do at the same moment (stop, save) or alike (where to start from, which folder).
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from umc.utils.errors import UmcError
from umc.utils.ranks import PeerLost, Ranks, SharedError, ranks_from_env

PATIENCE = datetime.timedelta(minutes=10)
"""How long a process waits for the others before it gives up, NCCL's own default. It has to cover the first compilation
of Warp's kernels on the slowest machine; a process that dies is noticed at once."""

LOST = re.compile(r"gloo|nccl|connection (closed|reset)|socket|broken pipe|timed? ?out", re.IGNORECASE)
"""What torch's errors about other processes say; they are plain RuntimeErrors on gloo."""

AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Set to ``True`` by torchrun where it keeps the processes' meeting place itself."""

LAUNCHER = "python -m torch.distributed.run --nproc_per_node 2"
"""How several processes are started; the same as ``torchrun``."""


def check_flag(wanted: bool, ranks: Ranks) -> None:
    """Refuse ``--distributed`` without others, and others without ``--distributed``.

    Args:
        wanted: Whether ``--distributed`` was given.
        ranks: This process among the others.

    Raises:
        UmcError: If flag and processes do not fit.
    """
    if ranks.several and not wanted:
        raise UmcError(
            f"{ranks.world_size} processes were started (WORLD_SIZE); add --distributed if they are to train together"
        )
    if wanted and not dist.is_torchelastic_launched() and not ranks.several:
        raise UmcError(f"--distributed needs a launcher: {LAUNCHER} scripts/train.py --distributed ...")


def connect(ranks: Ranks, purpose: str) -> None:
    """Find the other processes.

    Args:
        ranks: This process among the others; alone it connects to nobody.
        purpose: What for. A Stage 1 that is trained on the way meets at the same address as the run that waits for it,
            under another name.

    Raises:
        PeerLost: If they do not come.
    """
    if not ranks.several or dist.is_initialized():
        return
    # CPU tensors (what is agreed upon) go by gloo, CUDA tensors (gradients) by NCCL
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    with peers():
        store, rank, world_size = next(rendezvous("env://", timeout=PATIENCE))
        store = dist.PrefixStore(f"umc/{purpose}", store)  # pyright: ignore[reportPrivateImportUsage]
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=PATIENCE)


def check_stage1_on_the_way(ranks: Ranks) -> None:
    """Refuse to train a missing Stage 1 where the processes of its training could not meet.

    torchrun itself keeps the address at which processes meet. Of processes that others started (srun, mpirun) the first
    keeps it, and its child would have to open the same port once more.

    Args:
        ranks: This process among the others.

    Raises:
        UmcError: If somebody other than torchrun started them.
    """
    if ranks.several and os.environ.get(AGENT_STORE) != "True":
        raise UmcError(
            "there is no Stage 1 to start from, and processes that torchrun did not start cannot train it on the way; "
            "train Stage 1 first, or start with torchrun"
        )


def check_gpus(device: str) -> None:
    """Refuse processes that share a GPU, which NCCL does not connect; all have to call this at the same moment.

    By the GPUs' own numbers: how many a process sees says nothing where a scheduler shows each its own.

    Args:
        device: Device of this process.

    Raises:
        SharedError: If two have the same.
    """
    mine = None if device == "cpu" else str(torch.cuda.get_device_properties(device).uuid)
    gpus = [gpu for gpu in everyone(mine) if gpu is not None]
    if len(set(gpus)) < len(gpus):
        raise SharedError(
            f"{len(gpus)} processes have {len(set(gpus))} GPUs in all, and each needs one of its own; give torchrun "
            "--nproc_per_node the GPUs of a machine, or --device cpu"
        )


def disconnect() -> None:
    """Leave the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()


@contextlib.contextmanager
def peers() -> Iterator[None]:
    """Turn torch's many errors over a process that is gone into :class:`PeerLost`; errors of one process stay."""
    try:
        yield
    except dist.DistError as error:
        raise PeerLost(error) from error
    except RuntimeError as error:
        if not ranks_from_env().several or LOST.search(str(error)) is None:
            raise
        raise PeerLost(error) from error


def same[T](value: T) -> T:
    """What process 0 has, in every process.

    Args:
        value: Plain values; only that of process 0 counts.

    Returns:
        The value of process 0.
    """
    if not dist.is_initialized():
        return value
    box = [value]
    with peers():
        dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
    return box[0]


def everyone[T](value: T) -> list[T]:
    """What each process has, in every process.

    Args:
        value: Plain values and CPU tensors.

    Returns:
        The values in the order of ranks.
    """
    if not dist.is_initialized():
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    with peers():
        dist.all_gather_object(values, value)
    return values


def highest(*numbers: int) -> list[int]:
    """The highest of all processes' numbers, one by one.

    Args:
        *numbers: Whole numbers, as many in every process.

    Returns:
        The highest.
    """
    if not dist.is_initialized():
        return list(numbers)
    together = torch.tensor(numbers, dtype=torch.int64)
    with peers():
        dist.all_reduce(together, op=dist.ReduceOp.MAX)
    return together.tolist()


def together[T](step: Callable[[], T]) -> T:
    """Do something in every process, and fail in every process where one fails: none is left waiting for another.

    Args:
        step: What to do; nothing in it may wait for the other processes.

    Returns:
        What it returned here.

    Raises:
        SharedError: If it raised an UmcError in any process.
    """
    result, mine = None, None
    try:
        result = step()
    except UmcError as error:
        mine = str(error)
    errors = {rank: error for rank, error in enumerate(everyone(mine)) if error is not None}
    if errors:
        rank, text = next(iter(errors.items()))
        raise SharedError(text if rank == 0 else f"{text} (process {rank})")
    return result  # pyright: ignore[reportReturnType]


def weights_digest(saved: Mapping[str, Any]) -> str:
    """SHA-256 of all parameters and statistics: networks that are equal bit by bit have equal digests.

    Args:
        saved: What an algorithm's ``save`` gives.

    Returns:
        The digest in hexadecimal.
    """
    digest = hashlib.sha256()
    for part in ("actor_state_dict", "critic_state_dict"):
        for name, tensor in saved[part].items():
            digest.update(f"{part}.{name}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def configure_rsl_rl(runner: Any) -> None:
    """What rsl_rl's runner does about several processes, for a CPU, too.

    What: stands in for ``OnPolicyRunner._configure_multi_gpu``.
    Why: rsl_rl 5.5.1 demands the device ``cuda:<local rank>`` and NCCL, and opens the process group itself, when the
    run's folder and its first checkpoint have to be agreed upon long before.
    When it can go: once rsl_rl takes the process group that is there.

    Args:
        runner: The runner under construction; ``device`` and ``cfg`` are set.

    Raises:
        UmcError: If there are other processes, but :func:`connect` has not been called.
    """
    ranks = ranks_from_env()
    runner.gpu_world_size = ranks.world_size
    runner.gpu_local_rank, runner.gpu_global_rank = ranks.local_rank, ranks.rank
    runner.is_distributed = ranks.several
    runner.cfg["multi_gpu"] = None
    if not ranks.several:
        return
    if not dist.is_initialized():
        raise UmcError("several processes, but no connection: call umc.utils.distributed.connect before the runner")
    runner.cfg["multi_gpu"] = {
        "global_rank": ranks.rank,
        "local_rank": ranks.local_rank,
        "world_size": ranks.world_size,
    }
    device = torch.device(runner.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
