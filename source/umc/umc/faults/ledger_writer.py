# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Writes down what really breaks: plans, switches and ends of all episodes, one line of JSON each."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

import umc
from umc.faults.cfg import check_path
from umc.faults.kinds import JointLimits
from umc.faults.plan import NEVER, FaultPlan
from umc.faults.schedule import FaultSchedule
from umc.faults.state import FaultState
from umc.utils.errors import UmcError

FORMAT = "umc_fault_ledger"
"""Key of the header that holds the format's version."""

VERSION = 1
"""Version of the format."""

_DIGITS = 9
"""Significant digits that tell any two float32 numbers apart."""


class LedgerWriter:
    """Keeps the ledger of one environment.

    Every env step that has something to say ends in one write of whole lines, so that a killed process loses at most
    the step it was in.

    Args:
        path: The file; its folder is made, the file must not exist.
        state: The faults that it records.
        schedule: What draws them, so that a replay can draw further episodes; None if nothing can.
        robot: What the robot is called.
        step_dt: Length of an env step [s]; None if unknown.

    Raises:
        UmcError: If the file exists or cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        state: FaultState,
        schedule: FaultSchedule | None = None,
        *,
        robot: str = "",
        step_dt: float | None = None,
    ) -> None:
        self.path = check_path("ledger", path)
        self._state, self._schedule = state, schedule
        self._changes = 0
        source = state.source
        self._told = {kind.name for kind in source.kinds}
        # joints stand in the order of the draws, so that a replay of a replay still draws the same
        self._joint = source.joint_ids.tolist()
        names = sorted(zip(self._joint, source.joint_names, strict=True))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("x", encoding="utf-8")
        except FileExistsError as error:
            raise UmcError(f"the ledger {self.path} is there already; delete it, or give another name") from error
        except OSError as error:
            raise UmcError(f"cannot write the ledger {self.path}: {error.strerror}") from error
        header = {
            FORMAT: VERSION,
            "umc": umc.__version__,
            "robot": robot,
            "joints": [name for _, name in names],
            "kinds": {kind.name: kind.unit for kind in source.kinds},
            "scenarios": [{"name": one.name, "kinds": one.kinds, "detected": one.detected} for one in source.scenarios],
            "num_faults": source.num_faults,
            "seed": source.seed,
            "num_envs": state.num_envs,
            "step_dt": step_dt,
            "schedule": None if schedule is None else schedule.settings,
        }
        self._write([header])

    def begin(self, env_ids: torch.Tensor, length: torch.Tensor) -> None:
        """Record the plans of episodes that have just begun, and the lengths [env steps] of those before.

        Both int64 of (N,).
        """
        lines: list[dict[str, Any]] = []
        schedule = self._schedule
        if schedule is not None and schedule.changes != self._changes:
            self._changes = schedule.changes
            lines.append({"schedule": {"ratios": schedule.ratios, "level": schedule.level}})
        envs, episodes = env_ids.tolist(), self._state.episode[env_ids].tolist()
        lines += [
            {"end": [env, episode - 1], "length": steps}
            for env, episode, steps in zip(envs, episodes, length.tolist(), strict=True)
            if episode > 0
        ]
        plan = self._state.plan
        names = [field.name for field in fields(FaultPlan)]
        rows: dict[str, list[Any]] = {name: getattr(plan, name)[env_ids].tolist() for name in names}
        draws = self._draws(env_ids)
        for row, (env, episode) in enumerate(zip(envs, episodes, strict=True)):
            faults = [
                self._fault({name: values[row][number] for name, values in rows.items()})
                for number in range(self._state.source.num_faults)
            ]
            line: dict[str, Any] = {"plan": [env, episode], "faults": faults}
            if draws[row] != (self._state.source.seed, env + self._state.first_env, episode):
                line["draws"] = draws[row]
            lines.append(line)
        self._write(lines)

    def amend(self, env: int, faults: Sequence[int]) -> None:
        """Record the faults, by number, that were changed manually in the plan of a running episode."""
        state = self._state
        line: dict[str, Any] = {"amend": [env, int(state.episode[env]), int(state.step[env])]}
        new = {kind.name: kind.unit for kind in state.kinds if kind.name not in self._told}
        if new:
            self._told |= new.keys()
            line["kinds"] = new
        names = [field.name for field in fields(FaultPlan)]
        line["faults"] = {
            str(number): self._fault({name: getattr(state.plan, name)[env, number].tolist() for name in names})
            for number in faults
        }
        self._write([line])

    def switch(self, envs: torch.Tensor, limits: JointLimits | None) -> None:
        """Record which faults are on in the envs of a mask, shape (E,), and the limits written into physics."""
        ids = envs.nonzero().squeeze(1)
        state = self._state
        rows = zip(
            ids.tolist(),
            state.episode[ids].tolist(),
            state.step[ids].tolist(),
            state.faults_on[ids].tolist(),
            state.broken[ids].tolist(),
            strict=True,
        )
        values = {} if limits is None else {name: limit[ids].tolist() for name, limit in vars(limits).items()}
        lines = []
        for row, (env, episode, step, on, broken) in enumerate(rows):
            line: dict[str, Any] = {"switch": [env, episode, step], "on": _where(on)}
            if any(broken):
                columns = _where(broken)
                line["joints"] = [self._joint[column] for column in columns]
                line |= {name: [_number(limit[row][column]) for column in columns] for name, limit in values.items()}
            lines.append(line)
        self._write(lines)

    def _draws(self, env_ids: torch.Tensor) -> list[tuple[int, int, int]]:
        """Seed, env and episode that random numbers of some envs are drawn for."""
        state = self._state
        seed, env, episode = state.source.identity(env_ids + state.first_env, state.episode[env_ids])
        seeds = [seed] * len(env_ids) if isinstance(seed, int) else seed.tolist()
        return list(zip(seeds, env.tolist(), episode.tolist(), strict=True))

    def close(self) -> None:
        """Close the file; nothing is lost without it."""
        self._file.close()

    def _fault(self, fault: dict[str, Any]) -> dict[str, Any]:
        """One fault of a plan, without what has no effect."""
        columns, kinds = _where(fault["joints"]), _where(fault["kinds"])
        entry: dict[str, Any] = {"scenario": fault["scenario"]}
        if not columns or not kinds:
            return entry
        entry |= {"detected": fault["detected"], "joints": [self._joint[column] for column in columns]}
        entry |= {name: fault[name] for name in ("onset", "end") if fault[name] != NEVER}
        if fault["period"] != NEVER:
            entry |= {"period": fault["period"], "on": fault["on"]}
        severity = {self._state.kinds[kind].name: fault["severity"][kind] for kind in kinds}
        entry["kinds"] = {name: _short([_number(row[column]) for column in columns]) for name, row in severity.items()}
        entry["placement"] = [_number(fault["placement"][column]) for column in columns]
        return entry

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if not lines:
            return
        try:
            text = [json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines]
            self._file.write("".join(text))
            self._file.flush()
        except OSError as error:
            raise UmcError(f"cannot write the ledger {self.path}: {error.strerror}") from error


def _where(row: list[bool]) -> list[int]:
    """Indices of what is true."""
    return [index for index, is_true in enumerate(row) if is_true]


def _number(value: float) -> float | None:
    """A float32 number in as few digits as bring it back to the bit; None for an infinite one."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def _short(values: list[float | None]) -> Any:
    """One number for many that are the same."""
    return values[0] if len(set(values)) == 1 else values
