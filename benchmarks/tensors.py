# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Bytes of tensors for each env, and floating-point operations of the networks, of A1 without an engine; Markdown.

Counted on a CPU, whose encoder keeps about as much for its backward pass as torch's own, which a GPU takes. *Faults*
are the schedule's and the state's tensors, *rollout* is rsl_rl's storage, *update* what a PPO update takes beyond both
at its peak (one epoch, with mirror images: activations, gradients, copies of a mini-batch), *networks* weights,
gradients and Adam's state. What the engine holds, CUDA's own memory, and what torch's allocator keeps are not counted.
Usage:

    ./isaaclab.sh -p benchmarks/tensors.py [--agents mlp transformer] [--num_envs 256 1024] [--extrapolate 4096 10000]
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from common import positive
from learning import STEPS, make_runner, update_time
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from umc.faults import FaultSchedule, FaultState, JointLimits, LedgerWriter, training_faults
from umc.rl.runner import UmcRunner
from umc.robots import A1_JOINTS

MINI_BATCHES = (4, 16)
"""Mini-batches of an epoch: those of the tasks and of the recipes for a GPU."""

ENTRIES = 64
"""Envs whose ledger is written."""

COUNTED_ENVS = 16
"""Envs whose operations are counted."""


def live_bytes() -> int:
    """Return the bytes of all tensors that Python holds; views of one storage count once."""
    gc.collect()
    with warnings.catch_warnings(action="ignore"):  # some classes say that they are deprecated when asked for theirs
        tensors = [one for one in gc.get_objects() if isinstance(one, torch.Tensor)]
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}
    return sum(storages.values())


class Peak(TorchDispatchMode):
    """Largest number of bytes that operators have allocated and that are not free again, since it was entered."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {one.untyped_storage()._cdata for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor) and (key := one.untyped_storage()._cdata) not in before:
                self._live[key] = StorageWeakRef(one.untyped_storage()), one.untyped_storage().nbytes()
        self._live = {key: entry for key, entry in self._live.items() if not entry[0].expired()}
        self.bytes = max(self.bytes, sum(size for _, size in self._live.values()))
        return result


def taken_by(make: Callable[[], object]) -> tuple[Any, int]:
    """Return what a function makes, and the bytes of tensors that it takes."""
    before = live_bytes()
    made = make()
    return made, live_bytes() - before


def make_faults(num_envs: int) -> FaultState:
    """Make the faults of Stage 2, in the middle of an episode."""
    params = {name: value for name, value in training_faults("a1").items() if name != "joint_names"}
    state = FaultState(FaultSchedule(A1_JOINTS, **params), num_envs)
    state.reset(torch.arange(num_envs))
    state.advance(torch.full((num_envs,), 500), torch.zeros(num_envs, len(A1_JOINTS)))
    return state


def ledger_bytes() -> float:
    """Return what a ledger takes on the disk for an episode of an env [byte]."""
    state, envs = make_faults(ENTRIES), torch.arange(ENTRIES)
    healthy = JointLimits(*(torch.full((ENTRIES, len(A1_JOINTS)), value) for value in (-1.0, 1.0, 20.0, 10.0)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        writer = LedgerWriter(path, state)
        header = path.stat().st_size
        for _ in range(4):
            state.reset(envs)
            writer.record_plans(envs, torch.full((ENTRIES,), 1000))
            changed = state.advance(torch.full((ENTRIES,), 500), torch.zeros(ENTRIES, len(A1_JOINTS)))
            writer.record_switches(changed, state.limits(healthy))
        writer.close()
        return (path.stat().st_size - header) / (4 * ENTRIES)


def storage_bytes(runner: UmcRunner) -> int:
    """Return the bytes of rsl_rl's rollout."""
    found: dict[int, int] = {}
    for value in vars(runner.alg.storage).values():
        for one in [*value.values(True, True)] if hasattr(value, "batch_size") else tree_leaves(value):
            if isinstance(one, torch.Tensor):
                found[one.untyped_storage().data_ptr()] = one.untyped_storage().nbytes()
    return sum(found.values())


def update_within(runner: UmcRunner, counter: Any) -> None:
    """Fill the storage and update once, the update alone within a counter."""
    update = runner.alg.update

    def counted() -> Any:
        with counter:
            return update()

    runner.alg.update = counted
    update_time(runner)


def measure(agent: str, num_envs: int, mini_batches: int) -> tuple[int, int, int]:
    """Return the bytes of rollout, update and networks."""
    runner = make_runner(agent, mirror=True, num_envs=num_envs)
    runner.alg.num_mini_batches, runner.alg.num_learning_epochs = mini_batches, 1
    peak = Peak()
    update_within(runner, peak)
    weights = [*runner.alg.actor.parameters(), *runner.alg.critic.parameters()]
    networks = 4 * sum(one.numel() * one.element_size() for one in weights)  # with gradients and Adam's two means
    return storage_bytes(runner), peak.bytes, networks


def operations(agent: str) -> tuple[float, float]:
    """Return the operations of an action, and of learning from a sample once, with its mirror image [FLOP]."""
    count = COUNTED_ENVS
    runner = make_runner(agent, mirror=True, num_envs=count)
    obs = runner.env.get_observations()
    with FlopCounterMode(display=False) as acting, torch.inference_mode():
        runner.alg.act(obs)
    runner.alg.num_learning_epochs = 1
    learning = FlopCounterMode(display=False)
    update_within(runner, learning)
    return acting.get_total_flops() / count, learning.get_total_flops() / (count * STEPS)


def line(sizes: Sequence[int], found: Sequence[float]) -> tuple[float, float]:
    """Return bytes per env and bytes without envs from those of the smallest and the largest size."""
    each = (found[-1] - found[0]) / (sizes[-1] - sizes[0])
    return each, found[0] - each * sizes[0]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", default=["mlp", "transformer"])
    parser.add_argument("--num_envs", nargs="+", type=positive, default=[256, 1024], help="sizes that are measured")
    parser.add_argument("--extrapolate", nargs="+", type=int, default=[4096, 10000], help="sizes that are not")
    args = parser.parse_args()
    sizes = sorted({*args.num_envs})
    if len(sizes) < 2:
        parser.error("--num_envs takes two numbers or more")
    torch.set_num_threads(1)
    faults = [taken_by(lambda size=size: make_faults(size))[1] for size in sizes]
    each_fault, _ = line(sizes, faults)
    print(f"A1; ledger: {ledger_bytes():,.0f} bytes on the disk for an episode of an env\n")
    head = ["agent", "mini-batches", "faults", "rollout", "update", "networks [MB]"]
    head += [*(f"{size:,} envs [GB]" for size in args.extrapolate), "update off the line"]
    print(f"Measured at {', '.join(f'{size:,}' for size in sizes)} envs; [kB] for each env\n")
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1), flush=True)
    for agent in args.agents:
        for mini_batches in MINI_BATCHES:
            found = [measure(agent, size, mini_batches) for size in sizes]
            (rollout, _), (update, fixed) = (line(sizes, [one[part] for one in found]) for part in (0, 1))
            bent = max(abs(one[1] / (update * size + fixed) - 1.0) for one, size in zip(found, sizes, strict=True))
            networks = found[0][2]
            cells = [agent, mini_batches, *(f"{each / 1e3:.1f}" for each in (each_fault, rollout, update))]
            cells.append(f"{networks / 1e6:.1f}")
            each = each_fault + rollout + update
            cells += [f"{(size * each + max(fixed, 0.0) + networks) / 1e9:.2f}" for size in args.extrapolate]
            cells.append(f"{bent:.1%}")
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    head = ["agent", "an env step", "learning from a sample once", "an iteration, 4,096 envs, 5 epochs"]
    print("\n[MFLOP], an iteration [TFLOP]; an env step is an action and its value\n")
    print("| " + " | ".join(head) + " |")
    print("|---|---:|---:|---:|")
    for agent in args.agents:
        action, sample = operations(agent)
        iteration = 4096 * STEPS * (action + 5 * sample) / 1e12
        print(f"| {agent} | {action / 1e6:.2f} | {sample / 1e6:.2f} | {iteration:.2f} |", flush=True)


if __name__ == "__main__":
    main()
