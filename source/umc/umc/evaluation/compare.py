# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Several policies meet the same faults, one after another in one simulation."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import umc
from umc.evaluation.batches import PARTIAL, Batches, Parts, code_fingerprint, fingerprint
from umc.evaluation.candidates import Candidate
from umc.evaluation.labels import groups_of, labels_of
from umc.evaluation.protocol import Protocol
from umc.evaluation.session import Session, running_all
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.evaluation.study import Study


@dataclass(frozen=True)
class Unit:
    """One batch of one policy: what is simulated, kept and handed out as a whole."""

    policy: int
    """Number of the policy."""
    batch: int
    """Number of the batch."""
    path: Path
    """Where its result lies once it is there."""


class Comparison:
    """An evaluation under faults that knows what of it is done.

    Args:
        session: Checkpoints and task; its env cfg is made ready here.
        protocol: The conditions.
        num_envs: Most envs of a batch.
        episodes: Robots of each cell; as many as fit in one batch if not given.
        out: Folder of the report.
    """

    def __init__(self, session: Session, protocol: Protocol, num_envs: int, episodes: int | None, out: Path) -> None:
        from umc.evaluation.conditions import disable_training_randomization, set_faults

        self.session, self.protocol, self.out = session, protocol, out
        self.batches = Batches.plan(protocol, num_envs, episodes)
        # a batch may be smaller than what was asked for, and Isaac Lab reads the flag once more when the env is made
        session.options.num_envs = self.batches.num_envs
        disable_training_randomization(
            session.env_cfg, protocol.command, self.batches.num_envs, protocol.steps, protocol.seed
        )
        set_faults(session.env_cfg, protocol)
        self.parts = Parts(out / PARTIAL, self._conditions())
        policies = [_policy_fingerprint(one) for one in session.candidates]
        self.units = [
            Unit(number, batch, self.parts.path(policy, self.batches, batch))
            for number, policy in enumerate(policies)
            for batch in range(self.batches.count)
        ]

    def named(self, units: Sequence[Sequence[int]]) -> list[Unit]:
        """Units for another process, which looks for them under plain names."""
        return [Unit(policy, batch, self.parts.folder / f"{policy}_{batch}.pt") for policy, batch in units]

    def missing(self) -> list[Unit]:
        """Units whose result is not there yet."""
        return [unit for unit in self.units if not unit.path.is_file()]

    def simulate(self, units: list[Unit]) -> None:
        """Run units and keep the result of each."""
        from umc.evaluation.rollout import feet_of, feet_sensor, progress, run_faults

        names = self._names()
        steps = self.protocol.steps
        done = len(self.units) - len(units)
        with running_all(self.session) as (env, policies):
            feet = feet_of(self.session.env_cfg)
            sensor = feet_sensor(env, feet)
            bodies: Any = env.scene.sensors[sensor.name]
            found = [bodies.body_names[number] for number in list(cast("list[int]", sensor.body_ids))]
            with progress(len(self.units) * steps, "evaluating", done * steps) as bar:
                for unit in units:
                    bar.set_description(f"{names[unit.policy]}, batch {unit.batch + 1}/{self.batches.count}")
                    assignment = self.batches.assignment(unit.batch)
                    run = run_faults(env, policies[unit.policy], self.protocol, assignment, feet, bar)
                    self.parts.save(unit.path, self.batches.wanted(unit.batch, run), found)

    def study(self) -> Study:
        """Put all results together."""
        from umc.evaluation.study import EpisodeBatch, PolicyResult, Study

        session = self.session
        checkpoints = [(one.path, one.info) for one in session.candidates]
        results, feet = [], ()
        for number, (label, group) in enumerate(zip(self._names(), groups_of(checkpoints), strict=True)):
            loaded = [self.parts.load(unit.path) for unit in self.units if unit.policy == number]
            feet = loaded[0][1]
            about = _about_policy(session.candidates[number])
            results.append(PolicyResult(label, group, about, EpisodeBatch.join([run for run, _ in loaded])))
        cfg = session.env_cfg
        return Study(
            protocol=self.protocol,
            step_dt=cfg.sim.dt * cfg.decimation,
            joint_names=tuple(session.info.joint_names),
            about=self._about(),
            policies=tuple(results),
            feet=feet,
        )

    def _names(self) -> list[str]:
        checkpoints = [(one.path, one.info) for one in self.session.candidates]
        return labels_of(checkpoints, self.session.options.labels)

    def _conditions(self) -> dict[str, Any]:
        """Everything that decides the results of all policies."""
        from isaaclab.utils import to_dict

        from umc.utils.provenance import versions

        # which of a machine's GPUs it was is no matter: shares of several are collected together
        device = self.session.device.split(":")[0]
        env = to_dict(self.session.env_cfg)
        env["sim"]["device"] = device
        return {
            "task": self.session.task,
            "protocol": self.protocol.describe(),
            "env": env,
            "device": device,
            "versions": versions(),
            "code": code_fingerprint(Path(umc.__file__).parent),
        }

    def _about(self) -> dict[str, Any]:
        from umc.training.task_cfg import physics_name
        from umc.utils.provenance import git_state, now, versions

        session = self.session
        return {
            "task": session.task,
            "physics": physics_name(session.env_cfg),
            "device": session.device,
            "num_envs": self.batches.num_envs,
            "batches": self.batches.count,
            "robots_per_cell": self.batches.episodes,
            "seed": session.env_cfg.seed,
            "quick": session.options.quick,
            "action": "mean (no exploration noise)",
            "noise": "off",
            "pushes": "off",
            "randomised": "starts and physics, as in training",
            "command_line": shlex.join(sys.argv),
            "time": now(),
            "git": git_state(),
            "versions": versions(),
        }


def _about_policy(one: Candidate) -> dict[str, Any]:
    return {"path": str(one.path), "sha256": one.sha256, **asdict(one.info)}


def _policy_fingerprint(one: Candidate) -> str:
    """Of the weights and of the network that they belong to."""
    from umc.rl.policy import stored_agent

    return fingerprint([one.sha256, stored_agent(one.path, one.info)])


def read_share(text: str) -> tuple[int, int]:
    """Read which part of the work is this process's."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise UmcError(f"--share {text} is no share; 2/8 is the second of eight")
    return int(number) - 1, int(count)
