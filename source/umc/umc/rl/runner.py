# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Runs whose checkpoints survive any death of the process and that go on where they stopped; rsl_rl's runner as one."""

from __future__ import annotations

import dataclasses
import signal
import time
import warnings
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner

from umc.rl.checkpoint import (
    CheckpointInfo,
    read_checkpoint,
    require_iterations_left,
    require_resumable,
    write_checkpoint,
)
from umc.rl.logger import Progress, ProgressLogger
from umc.rl.symmetry import OnePassSymmetry, add_mirrored, mirror_of
from umc.rl.watchdog import Watchdog
from umc.utils.distributed import all_gather, all_reduce_max, configure_rsl_rl, ranks_from_env, weights_digest
from umc.utils.errors import UmcError
from umc.utils.random_state import random_states, seed_all, set_random_states

SAVE_EVERY_S = 120.0
"""Longest time between two checkpoints [s]: what a ``kill -9`` may cost where iterations are slow."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end training after the running iteration, with a checkpoint."""

SECOND_SIGNAL_S = 1.0
"""Two signals closer than this [s] are one: `timeout` and terminals may send the same twice."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training stopped on a signal; its checkpoint is written."""

    def __init__(self, signum: int, checkpoint: Path) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum
        self.checkpoint = checkpoint


class _StopNow(Exception):
    """Leaves rsl_rl's loop between two iterations."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


class _StopSignals:
    """Notes the first Ctrl-C or SIGTERM; a later Ctrl-C raises at once."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.signum: int | None = None
        self.since = 0.0
        self.previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self.previous = {signum: signal.signal(signum, self._note) for signum in STOP_SIGNALS}
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for signum, handler in self.previous.items():
            signal.signal(signum, handler)

    def _note(self, signum: int, _frame: FrameType | None) -> None:
        if self.signum is None:
            self.signum, self.since = signum, time.monotonic()
            self.progress.note(
                "stopping after this iteration, then saving (Ctrl-C again: stop at once, without saving)"
            )
        elif signum == signal.SIGINT and time.monotonic() - self.since > SECOND_SIGNAL_S:
            raise KeyboardInterrupt


class TrainingRun:
    """What is the same for every RL library: checkpoints, progress, resuming, and Ctrl-C.

    A library's runner is a subclass that sets the attributes, calls :meth:`_keep` when they stand, and learns in
    :meth:`_learn`, where it logs every iteration.

    Attributes:
        env: Environment, wrapped for the library.
        cfg: Agent cfg as a dictionary.
        device: Device of the learning.
        alg: The library's algorithm, with rsl_rl's ``save`` and ``load``.
        gpu_world_size: Processes that learn together.
        current_learning_iteration: Iteration that runs, or the next one where none runs.
    """

    env: Any
    cfg: dict[str, Any]
    device: str
    alg: Any
    gpu_world_size: int
    current_learning_iteration: int

    def _keep(self, info: CheckpointInfo | None, save_every_s: float, **logger: Any) -> None:
        """Start to keep the run.

        Args:
            info: What checkpoints say about themselves; needed to write any.
            save_every_s: Longest time between two checkpoints [s].
            **logger: Arguments of rsl_rl's logger that depend on the library.
        """
        self.info = info
        self.save_every_s = save_every_s
        self.ranks = ranks_from_env()
        self.logger: ProgressLogger = ProgressLogger(
            on_iteration=self._after_iteration,
            cfg=self.cfg,
            env_cfg=self.env.cfg,
            num_envs=self.env.num_envs,
            gpu_world_size=self.gpu_world_size,
            device=self.device,
            **logger,
        )
        self.carried: dict[str, torch.Tensor] = {}
        """Counters of the environment, one entry per env, that a resumed run goes on with."""
        self._shares: list[dict[str, Any]] | None = None
        self._total = 0
        self._progress: Progress | None = None
        self._signals: _StopSignals | None = None
        self._watch: Watchdog | None = None
        self._last_save = time.monotonic()
        self._timed_save: Path | None = None

    def _learn(self, iterations: int, init_at_random_ep_len: bool) -> None:
        """Learn for a number of iterations, log each, save at the interval and at the end."""
        raise NotImplementedError

    def train(self, max_iterations: int, init_at_random_ep_len: bool = False) -> Path:
        """Train until the run has ``max_iterations`` iterations behind it, those before a resume included.

        Args:
            max_iterations: Iterations of the whole run.
            init_at_random_ep_len: Whether envs start at random points of their episodes.

        Returns:
            The last checkpoint.

        Raises:
            TrainingInterrupted: If Ctrl-C or SIGTERM came; the checkpoint is written.
            UmcError: If nothing is left to train.
        """
        done = self.current_learning_iteration
        require_iterations_left(done, max_iterations)
        self._total = max_iterations
        self._last_save = time.monotonic()
        steps = self.cfg["num_steps_per_env"] * self.env.num_envs * self.gpu_world_size
        with (
            Progress(max_iterations, done, steps) as self._progress,
            _StopSignals(self._progress) as self._signals,
            Watchdog() as self._watch,
        ):
            try:
                self._learn(max_iterations - done, init_at_random_ep_len)
            except _StopNow as stop:
                path = self._path(self.current_learning_iteration)
                if self.ranks.first:
                    self.save(str(path))
                self.logger.stop_logging_writer()
                raise TrainingInterrupted(stop.signum, path) from None
        return self._path(self.current_learning_iteration)

    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """Write a checkpoint atomically, with everything that a resume needs.

        Args:
            path: File to write.
            infos: More to store beside ``infos["umc"]``.

        Raises:
            UmcError: If the runner was not told what its checkpoints belong to.
        """
        if self.info is None:
            raise UmcError("this runner does not know its robot and model; give it `info` to save checkpoints")
        iteration = self.current_learning_iteration
        shares = [self._share()] if self._shares is None else self._shares
        data = self.alg.save()
        data["iter"] = iteration
        data["infos"] = {
            **(infos or {}),
            "umc": dataclasses.asdict(dataclasses.replace(self.info, iteration=iteration)),
            "resume": {
                "random": shares[0]["random"],
                "random_of_others": [share["random"] for share in shares[1:]],
                "weights": [share["weights"] for share in shares],
                "timesteps": self.logger.tot_timesteps,
                "seconds": self.logger.tot_time,
                "carried": {name: torch.cat([share["carried"][name] for share in shares]) for name in self.carried},
            },
        }
        write_checkpoint(path, data)
        self.logger.save_model(path, iteration)
        self._last_save = time.monotonic()
        self._forget_timed_save(Path(path))
        if self._progress is not None:
            self._progress.saved(Path(path).name)

    def load(
        self,
        path: str,
        load_cfg: dict | None = None,
        strict: bool = True,
        map_location: str | None = None,
        data: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Load a checkpoint as rsl_rl does, without running code from the file.

        Args:
            path: File to read.
            load_cfg: What to load; None loads everything.
            strict: Whether weights must fit exactly.
            map_location: Device for the tensors; the CPU by default, from where the model takes its own.
            data: What to load in place of the file's content.

        Returns:
            The checkpoint's infos.

        Raises:
            UmcError: If the file is missing or damaged, or its weights do not fit the model.
        """
        data = data or read_checkpoint(path, map_location or "cpu")
        try:
            load_iteration = self.alg.load(data, load_cfg, strict)
        except (RuntimeError, UmcError) as error:  # torch's and our models'
            raise UmcError(
                f"the weights in {path} do not fit the model (other sizes?); repeat the agent.* overrides it was "
                "trained with"
            ) from error
        if load_iteration:
            self.current_learning_iteration = data["iter"]
        return data["infos"]

    def resume(self, path: str) -> None:
        """Go on where a checkpoint stopped: weights, optimizer, learning rate, iteration, random numbers, counters.

        The state of the simulation is not stored: envs start new episodes. Of several processes each takes its share;
        where there are now more or fewer, none takes another's random numbers.

        Args:
            path: Checkpoint of this run.

        Raises:
            UmcError: If the file is missing or damaged, lacks what a run goes on with, or does not fit the model.
        """
        data = read_checkpoint(path)  # to the CPU: Adam's counters of steps would stay on a GPU, and be waited for
        require_resumable(data, path)
        infos = self.load(path, data=data)
        # the file's iteration is done; rsl_rl itself would repeat it
        self.current_learning_iteration += 1
        state = infos["resume"]
        self.logger.tot_timesteps = state["timesteps"]
        self.logger.tot_time = state["seconds"]
        for name, counter in self.carried.items():
            saved = state["carried"][name]
            if len(saved) == len(counter) * self.ranks.world_size:
                counter.copy_(saved[self.ranks.first_env(len(counter)) :][: len(counter)])
            else:  # another number of envs cannot be matched env by env: none goes back behind the furthest
                counter.copy_(saved.max())
        others = state.get("random_of_others", [])  # checkpoints of UMC 0.1 have none
        if self.ranks.first:
            set_random_states(state["random"], self.device)
        elif len(others) + 1 == self.ranks.world_size:
            set_random_states(others[self.ranks.rank - 1], self.device)
        else:
            seed_all(self.ranks.seed(infos["umc"]["seed"] + self.current_learning_iteration))

    def _share(self) -> dict[str, Any]:
        """What this process adds to a checkpoint."""
        return {
            "random": random_states(self.device),
            "carried": {name: counter.cpu().clone() for name, counter in self.carried.items()},
            "weights": weights_digest(self.alg.save()) if self.ranks.several else None,
        }

    def _gather(self) -> None:
        """Bring together what processes add to a checkpoint; all have to call this at the same moment."""
        self._shares = all_gather(self._share())
        digests = [share["weights"] for share in self._shares]
        if len(set(digests)) > 1:
            odd = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
            text = f"the weights of processes {odd} have drifted from those of process 0, which they get now"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            self.alg.broadcast_parameters()

    def _path(self, iteration: int) -> Path:
        if self.logger.log_dir is None:
            raise UmcError("this runner has no run folder; give it `log_dir` to train")
        return Path(self.logger.log_dir) / f"model_{iteration}.pt"

    def _after_iteration(self, iteration: int, seconds: float, action_std: torch.Tensor) -> None:
        if self._watch is not None:
            self._watch.heartbeat(seconds)
        # the library's loop saves at its interval and at the end by itself, right after this call
        loop_saves = iteration % self.cfg["save_interval"] == 0 or iteration + 1 == self._total
        stop = None if self._signals is None else self._signals.signum
        timed = not loop_saves and self.ranks.first and time.monotonic() - self._last_save >= self.save_every_s
        # no process stops or saves alone: the others would wait for it
        signum, save_now = all_reduce_max(stop or 0, int(timed))
        stop, timed = signum or None, bool(save_now) and not signum
        if self.ranks.several and (loop_saves or timed or stop is not None):
            self._gather()
        if self._progress is not None:
            self._progress.update(
                seconds,
                self.logger.mean_return(),
                self.logger.mean_length(),
                action_std.mean().item(),
                line=not (loop_saves or timed or stop),
            )
        if stop is not None:
            raise _StopNow(stop)
        if timed and self.logger.writer is not None:  # only the first of several processes writes
            path = self._path(iteration)
            self.save(str(path))
            self._timed_save = path

    def _forget_timed_save(self, newer: Path) -> None:
        # checkpoints between two intervals serve only a crash: the newer one replaces them
        if self._timed_save is not None and self._timed_save != newer:
            self._timed_save.unlink(missing_ok=True)
        self._timed_save = None


class UmcRunner(TrainingRun, OnPolicyRunner):
    """rsl_rl's on-policy runner for every UMC policy."""

    def __init__(
        self,
        env: VecEnv,
        train_cfg: dict[str, Any],
        log_dir: str | None = None,
        device: str = "cpu",
        info: CheckpointInfo | None = None,
        save_every_s: float = SAVE_EVERY_S,
    ) -> None:
        """Build algorithm and logger.

        Args:
            env: Environment, wrapped for rsl_rl.
            train_cfg: Agent cfg as a dictionary.
            log_dir: Run folder; None writes nothing.
            device: Device of the learning.
            info: What checkpoints say about themselves; needed to write any.
            save_every_s: Longest time between two checkpoints [s].

        Raises:
            UmcError: If the task has no mirror image, or the mirror loss no sense.
        """
        symmetry: dict[str, Any] = {}
        if train_cfg.get("mirror"):
            if train_cfg["mirror_loss"] < 0.0:
                raise UmcError(f"agent.mirror_loss is {train_cfg['mirror_loss']}; it has to be 0 or more")
            mirror_of(env)  # what has no mirror image is said before anything is learnt
            symmetry = {
                "data_augmentation_func": add_mirrored,
                "use_data_augmentation": True,
                "use_mirror_loss": train_cfg["mirror_loss"] > 0.0,
                "mirror_loss_coeff": train_cfg["mirror_loss"],
            }
            train_cfg["algorithm"]["symmetry_cfg"] = dict(symmetry)
        OnPolicyRunner.__init__(self, env, train_cfg, log_dir=log_dir, device=device)
        if symmetry:
            self.alg.symmetry = OnePassSymmetry(env, **symmetry)
        self._keep(
            info,
            save_every_s,
            log_dir=log_dir,
            is_distributed=self.is_distributed,
            gpu_global_rank=self.gpu_global_rank,
        )

    def _configure_multi_gpu(self) -> None:
        configure_rsl_rl(self)

    def _learn(self, iterations: int, init_at_random_ep_len: bool) -> None:
        self.learn(iterations, init_at_random_ep_len)
