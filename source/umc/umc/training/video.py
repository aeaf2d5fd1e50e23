# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc train --video``: record what env 0 does while it trains, and film it in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from umc.mdp import fault_state
from umc.utils.console import waiting
from umc.utils.io import write_torch
from umc.utils.process import UMC, spawn

FOLDER, LOG = Path("videos", "train"), "film.log"
"""Folder of the clips in the run folder, and where the films' messages go."""

NICE = 19
"""How far a film steps back from the training on the same cores."""

FILMED_ENV = 0
"""Env that is filmed: its ground is the same in a scene of one env."""


class ClipRecorder(gym.Wrapper):
    """Records the robot of one env for ``length`` env steps in every ``interval``, and calls ``on_clip`` with the file.

    It only reads: a training is the same to the bit with and without it.
    """

    def __init__(self, env: gym.Env, folder: Path, length: int, interval: int, on_clip: Callable[[Path], None]) -> None:
        super().__init__(env)
        self.folder, self.length, self.interval, self.on_clip = folder, length, interval, on_clip
        self._clip: list[dict[str, torch.Tensor]] = []
        self._first = 0

    def step(self, action: Any) -> Any:
        """Step the environment and record what is due."""
        result = self.env.step(action)
        step = self.unwrapped.common_step_counter - 1  # of this step, from 0
        if not self._clip and step % self.interval == 0:
            self._first = step
        if self._clip or step == self._first:
            self._clip.append(self._frame())
        if len(self._clip) == self.length:
            self._write()
        return result

    def _frame(self) -> dict[str, torch.Tensor]:
        """Copy the state of the filmed env; it stays on the device."""
        env: Any = self.unwrapped
        robot, faults = env.scene["robot"].data, fault_state(env)
        pose = robot.root_link_pose_w.torch[FILMED_ENV].clone()
        pose[:3] -= env.scene.env_origins[FILMED_ENV]
        return {
            "root_pose": pose,
            "joint_pos": robot.joint_pos.torch[FILMED_ENV].clone(),
            "live": faults.live[FILMED_ENV].clone(),
            "episode_step": env.episode_length_buf[FILMED_ENV].clone(),
        }

    def finish(self) -> None:
        """Write a clip that the end of the training has cut short."""
        if self._clip:
            self._write()

    def _write(self) -> None:
        frames = {name: torch.stack([frame[name] for frame in self._clip]).cpu() for name in self._clip[0]}
        self._clip = []
        path = self.folder / f"step-{self._first}.pt"
        write_torch(path, {**frames, "step": self._first})
        self.on_clip(path)


class ClipFilms:
    """Films recordings one after the other, each in a child process, while the training goes on."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Take the arguments of ``umc film`` that name task, device and overrides."""
        self.arguments = list(arguments)
        self._due: list[Path] = []
        self._child: subprocess.Popen[Any] | None = None
        self._filmed: Path | None = None

    def add(self, recording: Path) -> None:
        """Film a recording as soon as the one before is done."""
        self._due.append(recording)
        self._poll()

    def finish(self) -> None:
        """Film what is left and wait for it."""
        if self._child is None and not self._due:
            return
        with waiting("filming the last clips"):
            while self._child is not None or self._due:
                self._poll()
                if self._child is not None:
                    self._child.wait()

    def stop(self) -> None:
        """End the running film, if any; recordings stay."""
        if self._child is not None:
            self._child.terminate()
            self._child.wait()

    def _poll(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            assert self._filmed is not None
            if self._child.returncode == 0:
                self._filmed.unlink()
            else:
                log = self._filmed.with_name(LOG)
                print(f"{self._filmed.stem} was not filmed, see {log}; its recording stays", file=sys.stderr)
            self._child = None
        if self._child is None and self._due:
            self._filmed = self._due.pop(0)
            files = ["--recording", str(self._filmed), "--out", str(self._filmed.with_suffix(".mp4"))]
            command = ["nice", f"-n{NICE}", sys.executable, *UMC, "film", *files, *self.arguments]
            self._child = spawn(command, self._filmed.with_name(LOG), alone=True)
