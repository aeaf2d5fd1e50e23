# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Training runs that checkpoint atomically, resume exactly and stop on signals; rsl_rl's runner as one."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from umc.rl.checkpoint import (
    CheckpointInfo,
    checkpoints_in,
    is_finite,
    read_checkpoint,
    require_iterations_left,
    require_resumable,
    weights_sha256,
    write_checkpoint,
)
from umc.rl.logger import IterationStats, Progress, RunLogger
from umc.rl.models import MaskedGruModel
from umc.rl.patches import configure_rsl_rl
from umc.rl.symmetry import make_symmetry, mirror_of
from umc.rl.update import speed_up
from umc.rl.watchdog import Watchdog
from umc.utils.distributed import all_gather, all_reduce_max, ranks_from_env
from umc.utils.errors import UmcError
from umc.utils.process import handle_signals
from umc.utils.random_state import random_states, seed_all, set_random_states

SAVE_EVERY_S = 120.0
"""Longest time between two checkpoints [s]: the most that a ``kill -9`` may lose."""

SECOND_SIGNAL_S = 1.0
"""Two signals closer than this [s] are one: `timeout` and terminals may send the same twice."""


class TrainingInterrupted(KeyboardInterrupt):
    """Training stopped on a signal; its checkpoint is written."""

    def __init__(self, signum: int, checkpoint: Path) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum
        self.checkpoint = checkpoint


class _StopSignals:
    """Note the first Ctrl-C or SIGTERM; a later Ctrl-C raises at once."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.signum: int | None = None
        self.since = 0.0

    def note(self, signum: int) -> None:
        """Take a signal."""
        if self.signum is None:
            self.signum, self.since = signum, time.monotonic()
            with contextlib.suppress(RuntimeError):  # of a line that was being written when the signal came
                self.progress.note(
                    "stopping after this iteration, then saving (Ctrl-C again: stop at once, without saving)"
                )
        elif signum == signal.SIGINT and time.monotonic() - self.since > SECOND_SIGNAL_S:
            raise KeyboardInterrupt


class TrainingRunner:
    """Checkpoints, progress, resuming and signals, for every RL library.

    A library's runner is a subclass that makes its algorithm in :meth:`_make_algorithm`, and learns in :meth:`_learn`,
    where it logs every iteration.
    """

    alg: Any
    """The library's algorithm, with rsl_rl's ``save`` and ``load``."""
    current_learning_iteration: int = 0
    """Last iteration that was completed in this start; before the first one, the next."""

    def __init__(
        self,
        env: Any,
        train_cfg: dict[str, Any],
        log_dir: str | None = None,
        device: str = "cpu",
        info: CheckpointInfo | None = None,
        save_every_s: float = SAVE_EVERY_S,
    ) -> None:
        """Make algorithm and logger; nothing is written without ``log_dir``, nothing saved without ``info``."""
        self.env = env
        self.cfg = train_cfg
        self.device = device
        self._make_algorithm(log_dir)
        self.info = info
        self.save_every_s = save_every_s
        self.ranks = ranks_from_env()
        self.logger: RunLogger = RunLogger(
            on_iteration=self._on_iteration_end,
            cfg=self.cfg,
            env_cfg=self.env.cfg,
            num_envs=self.env.num_envs,
            log_dir=log_dir,
            device=self.device,
            is_distributed=self.ranks.is_distributed,
            gpu_world_size=self.ranks.world_size,
            gpu_global_rank=self.ranks.rank,
        )
        self.env_counters: dict[str, torch.Tensor] = {}
        """Counters of the environment, one entry per env, that checkpoints store and a resumed run restores."""
        self._rank_states: list[dict[str, Any]] | None = None
        self._total = 0
        self._progress: Progress | None = None
        self._signals: _StopSignals | None = None
        self._watchdog: Watchdog | None = None
        self._last_save = time.monotonic()
        self._timed_saves: list[Path] = []
        """Checkpoints between two intervals, oldest first."""

    def _make_algorithm(self, log_dir: str | None) -> None:
        """Set ``alg`` from env, cfg and device."""
        raise NotImplementedError

    def _learn(self, iterations: int, init_at_random_ep_len: bool) -> None:
        """Learn for a number of iterations, log each, save at the interval and at the end."""
        raise NotImplementedError

    def train(self, max_iterations: int, init_at_random_ep_len: bool = False) -> Path:
        """Train until the run has ``max_iterations`` behind it; return the checkpoint."""
        done = self._next_iteration = self.current_learning_iteration
        require_iterations_left(done, max_iterations)
        self._total = max_iterations
        self._last_save = time.monotonic()
        steps = self.cfg["num_steps_per_env"] * self.env.num_envs * self.ranks.world_size
        folder = Path(self.logger.log_dir) if self.logger.log_dir is not None and self.ranks.is_main else None
        self._progress = Progress(max_iterations, done, steps, run_folder=folder)
        self._signals = _StopSignals(self._progress)
        with self._progress, handle_signals(self._signals.note), Watchdog() as self._watchdog:
            try:
                self._learn(max_iterations - done, init_at_random_ep_len)
            except (RuntimeError, ValueError) as error:
                # rsl_rl refuses what an env returns, and a distribution its own numbers
                if isinstance(error, UmcError) or ("NaN" not in str(error) and is_finite(self.alg.save())):
                    raise
                raise self._divergence(self._next_iteration, str(error)) from error
            finally:
                last = checkpoints_in(folder)[-1:] if folder is not None and folder.is_dir() else []
                self._delete_timed_saves([path for path in self._timed_saves if path not in last])
        return self._checkpoint_path(self.current_learning_iteration)

    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """Write a checkpoint atomically, with everything that a resume needs; ``infos`` is stored beside."""
        if self.info is None:
            raise UmcError("this runner does not know its robot and model; give it `info` to save checkpoints")
        iteration = self.current_learning_iteration
        states = [self._rank_state()] if self._rank_states is None else self._rank_states
        data = self.alg.save()
        if not is_finite(data):
            raise self._divergence(iteration, "weights are not finite")
        data["iter"] = iteration
        data["infos"] = {
            **(infos or {}),
            "umc": dataclasses.asdict(dataclasses.replace(self.info, iteration=iteration)),
            "resume": {
                "random": states[0]["random"],
                "random_of_others": [state["random"] for state in states[1:]],
                "weights": [state["weights"] for state in states],
                "timesteps": self.logger.tot_timesteps,
                "seconds": self.logger.tot_time,
                "carried": {
                    name: torch.cat([state["carried"][name] for state in states]) for name in self.env_counters
                },
            },
        }
        write_checkpoint(path, data)
        self.logger.save_model(path, iteration)
        self._last_save = time.monotonic()
        # one more is kept: a command may be about to read it
        self._delete_timed_saves(self._timed_saves[:-1])
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
        """Load a checkpoint as rsl_rl does, without running code from the file; return its infos."""
        data = data or read_checkpoint(path, map_location or "cpu")
        try:
            load_iteration = self.alg.load(data, load_cfg, strict)
        # torch's and umc.rl.models'; a part that is missing or has another form
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UmcError(
                f"the weights in {path} do not fit the model (other sizes?); repeat the agent.* overrides it was "
                "trained with"
            ) from error
        if load_iteration:
            self.current_learning_iteration = data["iter"]
        return data["infos"]

    def resume(self, path: str) -> None:
        """Restore weights, optimizer, learning rate, iteration, random numbers and counters of a checkpoint.

        The state of the simulation is not stored: envs start new episodes. Each of several processes restores its own
        random numbers; where their number has changed, they are seeded anew.
        """
        data = read_checkpoint(path)  # to the CPU: on a GPU every read of Adam's step counters would wait for it
        require_resumable(data, path)
        infos = self.load(path, data=data)
        # the file's iteration is complete; rsl_rl itself would repeat it
        self.current_learning_iteration += 1
        try:
            self._restore(infos)
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise UmcError(f"{path} has no valid counters and random states; give an earlier checkpoint") from error

    def _restore(self, infos: Mapping[str, Any]) -> None:
        """Restore counters and random numbers."""
        state = infos["resume"]
        self.logger.tot_timesteps = state["timesteps"]
        self.logger.tot_time = state["seconds"]
        for name, counter in self.env_counters.items():
            saved = state["carried"][name]
            if len(saved) == len(counter) * self.ranks.world_size:
                counter.copy_(saved[self.ranks.first_env(len(counter)) :][: len(counter)])
            else:  # another number of envs cannot be matched: none falls behind the furthest
                counter.copy_(saved.max())
        others = state.get("random_of_others", [])  # checkpoints of UMC 0.1 have none
        if self.ranks.is_main:
            set_random_states(state["random"], self.device)
        elif len(others) + 1 == self.ranks.world_size:
            set_random_states(others[self.ranks.rank - 1], self.device)
        else:
            seed_all(self.ranks.seed(infos["umc"]["seed"] + self.current_learning_iteration))

    def _rank_state(self) -> dict[str, Any]:
        """Return what this process adds to a checkpoint."""
        return {
            "random": random_states(self.device),
            "carried": {name: counter.cpu().clone() for name, counter in self.env_counters.items()},
            "weights": weights_sha256(self.alg.save()) if self.ranks.is_distributed else None,
        }

    def _gather_rank_states(self) -> None:
        """Gather what processes add to a checkpoint; all have to call this at the same point."""
        self._rank_states = all_gather(self._rank_state())
        digests = [state["weights"] for state in self._rank_states]
        if len(set(digests)) > 1:
            drifted = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
            text = f"the weights of processes {drifted} differ from those of process 0, which they are set to"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            self.alg.broadcast_parameters()

    def _checkpoint_path(self, iteration: int) -> Path:
        if self.logger.log_dir is None:
            raise UmcError("this runner has no run folder; give it `log_dir` to train")
        return Path(self.logger.log_dir) / f"model_{iteration}.pt"

    def _divergence(self, iteration: int, reason: str) -> UmcError:
        files = checkpoints_in(Path(self.logger.log_dir)) if self.logger.log_dir is not None else []
        last = f"; the last checkpoint before is {files[-1]}" if files else ""
        return UmcError(
            f"training diverged in iteration {iteration + 1} ({reason}){last}; give a smaller "
            "agent.algorithm.learning_rate and desired_kl, and look for rewards that are not finite"
        )

    def _on_iteration_end(self, iteration: int, stats: IterationStats) -> None:
        if not is_finite([stats.losses, stats.noise]):
            raise self._divergence(iteration, "losses are not finite")
        self._next_iteration = iteration + 1
        if self._watchdog is not None:
            self._watchdog.heartbeat(stats.seconds)
        # the library's loop itself saves at its interval and at the end, right after this call
        loop_saves = iteration % self.cfg["save_interval"] == 0 or iteration + 1 == self._total
        # a signal in the last iteration changes nothing
        stop = None if self._signals is None or iteration + 1 == self._total else self._signals.signum
        timed = not loop_saves and self.ranks.is_main and time.monotonic() - self._last_save >= self.save_every_s
        # all processes stop and save together: the others would wait for one that does so alone
        signum, save_now = all_reduce_max(stop or 0, int(timed))
        stop, timed = signum or None, bool(save_now) and not signum
        if self.ranks.is_distributed and (loop_saves or timed or stop is not None):
            self._gather_rank_states()
        if self._progress is not None:
            self._progress.update(stats, line=not (loop_saves or timed or stop))
        if stop is not None:
            path = self._checkpoint_path(iteration)
            if self.ranks.is_main:
                self.save(str(path))
            self.logger.stop_logging_writer()
            raise TrainingInterrupted(stop, path)  # leaves the library's loop
        if timed and self.logger.writer is not None:  # only the first of several processes writes
            path = self._checkpoint_path(iteration)
            self.save(str(path))
            self._timed_saves.append(path)

    def _delete_timed_saves(self, paths: Sequence[Path]) -> None:
        # they only serve a crash: a newer checkpoint replaces them
        for path in paths:
            path.unlink(missing_ok=True)
        self._timed_saves = [path for path in self._timed_saves if path not in paths]


class UmcRunner(TrainingRunner, OnPolicyRunner):
    """rsl_rl's on-policy runner for every UMC policy."""

    def _make_algorithm(self, log_dir: str | None) -> None:
        symmetry = make_symmetry(self.cfg, self.env)  # raises before anything is made
        OnPolicyRunner.__init__(self, self.env, self.cfg, log_dir=log_dir, device=self.device)
        speed_up(self.alg)
        self._check_memory()
        if symmetry is not None:
            self.alg.symmetry = symmetry
            if isinstance(actor := self.alg.get_policy(), MaskedGruModel):  # compiled or not
                actor.mirror = mirror_of(self.env).observations

    def _check_memory(self) -> None:
        """Refuse what learns from other mini-batches than those of whole rollouts."""
        alg = self.alg
        if alg.critic.is_recurrent or (alg.actor.is_recurrent and not isinstance(alg.get_policy(), MaskedGruModel)):
            raise UmcError("only umc.rl.models:MaskedGruModel has a memory here, and only as the actor; give another")
        if alg.actor.is_recurrent and self.cfg["num_steps_per_env"] == 1:
            raise UmcError("a memory learns from rollouts of at least two steps; give agent.num_steps_per_env=2")
        if alg.actor.is_recurrent and self.env.num_envs < alg.num_mini_batches:
            raise UmcError(
                f"{self.env.num_envs} envs are too few for {alg.num_mini_batches} mini-batches of whole rollouts; give "
                "more --num_envs, or fewer agent.algorithm.num_mini_batches"
            )

    def _configure_multi_gpu(self) -> None:
        configure_rsl_rl(self)

    def _learn(self, iterations: int, init_at_random_ep_len: bool) -> None:
        self.learn(iterations, init_at_random_ep_len)
