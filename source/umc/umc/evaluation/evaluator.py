# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Evaluates policies under the same faults, one after another in one simulation, batch by batch.

Each finished batch is kept on disk, so that an interrupted evaluation resumes and several machines can share one.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import isaaclab
import torch

import umc
from umc.evaluation.checkpoints import External, detector_remarks
from umc.evaluation.labels import groups_of, labels_of
from umc.evaluation.protocol import Protocol, disturbances
from umc.evaluation.session import AS_EVALUATED, Session, open_session
from umc.evaluation.study import EnvAssignment, EpisodeBatch, PolicyResult, Study, assignment_of
from umc.faults import find_kind
from umc.rl.policy import AGENT_FILE
from umc.utils import process
from umc.utils.config import FileModel, validated
from umc.utils.errors import UmcError
from umc.utils.executor import FOLDER, Executor, Job, run_all
from umc.utils.io import atomic_write, fingerprint, read_torch, sha256, write_torch

PARTS = "partial"
"""Folder, inside that of the report, of finished batches."""

DESCRIPTION = "policy.yaml"
"""File that describes a policy of others to another process."""

PLAN, OUT = "plan.json", "out"
"""File with what another process simulates, and the folder of its results."""

RETRIES = 2
"""How often a share is started again whose machine is lost."""

KEY_LENGTH = 24
"""Hexadecimal digits of a part's file name."""

FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]")
"""How a cfg names a function or class: ``module:name``."""

NOT_SIMULATED = (
    *("cli", "viewer", "kit", "sim2sim", "rendering", "deploy", "diagnosis", "config", "rl/data"),
    *(f"evaluation/{name}" for name in ("report", "breakdown.py", "estimates.py", "labels.py")),
)
"""Parts of this package that no simulation reads; a change of anything else makes other results. Protocols are in
``config``, but a part's name holds their content."""


@dataclass(frozen=True)
class Batches:
    """The robots of a protocol in the order (member, cell), cut into batches of one size.

    Robot ``i`` is member ``i // cells`` of cell ``i % cells``. The last batch may hold surplus robots, since all
    batches share one simulation; they are simulated and left out.
    """

    protocol: Protocol
    episodes: int
    """Robots of each cell."""
    num_envs: int
    """Envs of the simulation."""
    count: int
    """Number of batches."""

    @classmethod
    def plan(cls, protocol: Protocol, num_envs: int, episodes: int | None = None) -> Batches:
        """Choose batches of at most ``num_envs`` envs; without ``episodes``, one batch."""
        if episodes is None:
            protocol.check_envs(num_envs)
            episodes = num_envs // len(protocol.cells)
        total = episodes * len(protocol.cells)
        count = -(-total // num_envs)
        return cls(protocol, episodes, -(-total // count), count)

    def assignment(self, batch: int) -> EnvAssignment:
        """Assign the robots of a batch to its envs."""
        first = batch * self.num_envs
        return assignment_of(self.protocol, torch.arange(first, first + self.num_envs))

    def size(self, batch: int) -> int:
        """Return the robots of a batch without surplus ones."""
        return min(self.num_envs, self.episodes * len(self.protocol.cells) - batch * self.num_envs)


@dataclass(frozen=True)
class Part:
    """One batch of one policy."""

    policy: int
    """Index of the policy."""
    batch: int
    path: Path
    """File of its result."""

    @property
    def output(self) -> str:
        """Return the file of its result in the folder of a process that simulates it for another one."""
        return f"{OUT}/{PARTS}/{self.path.name}"

    def save(self, run: EpisodeBatch, joints: Sequence[str], feet: Sequence[str]) -> None:
        """Write its result and the names of the robot's joints and feet."""
        write_torch(self.path, {"run": run.tensors(), "joints": list(joints), "feet": list(feet)})

    def load(self, cells: int) -> tuple[EpisodeBatch, tuple[str, ...], tuple[str, ...]]:
        """Read what :meth:`save` wrote; raise UmcError if the file is damaged."""
        content = read_torch(self.path)
        try:
            file = validated(_PartFile, content, str(self.path))
            run = EpisodeBatch.read(file.run, file.joints, file.feet, cells)
            return run, tuple(file.joints), tuple(file.feet)
        except ValueError as error:
            raise UmcError(f"{self.path} is damaged ({error}); delete it and start again") from error


class _PartFile(FileModel):
    run: dict[str, Any]
    joints: list[str]
    feet: list[str]


class Evaluator:
    """An evaluation under faults that knows which of its parts are finished.

    The session's env cfg is changed to its conditions. A batch has at most ``num_envs`` envs; each cell has as many
    robots as ``episodes``, or as fit in one batch if that is None. ``out`` is the folder of the report.
    """

    def __init__(self, session: Session, protocol: Protocol, num_envs: int, episodes: int | None, out: Path) -> None:
        from umc.evaluation.conditions import set_protocol

        self.session, self.protocol = session, protocol
        self.batches = Batches.plan(protocol, num_envs, episodes)
        num_envs = self.batches.num_envs
        # Isaac Lab reads the flag once more when the env is made, and a batch may be smaller than asked for
        session.options.num_envs = num_envs
        set_protocol(session.env_cfg, protocol, num_envs)
        self.folder = out / PARTS
        self.detector_remarks = detector_remarks(session.checkpoints, session.env_cfg)
        checkpoints = [(one.path, one.info) for one in session.checkpoints]
        self.labels = labels_of(checkpoints, session.options.labels)
        sources = len({one.detection for one in session.checkpoints})  # each policy comes once for each
        groups = groups_of(checkpoints[::sources])
        watched = [f", {one.detection}" if one.detection else "" for one in session.checkpoints]
        self.groups = [groups[number // sources] + words for number, words in enumerate(watched)]
        if session.options.labels is None:
            self.labels = [name + words for name, words in zip(self.labels, watched, strict=True)]
        if twice := [name for name, count in Counter(self.labels).items() if count > 1]:
            raise UmcError(f"two policies have the name {twice[0]}; give each its own by --labels")
        conditions = self._conditions()
        policies = [fingerprint(one.identity) for one in session.checkpoints]
        self.parts = [
            Part(number, batch, self.folder / f"{self._key(conditions, policy, batch)}.pt")
            for number, policy in enumerate(policies)
            for batch in range(self.batches.count)
        ]

    def describe(self) -> list[str]:
        """Return lines for the screen about what is going to be measured."""
        protocol, batches = self.protocol, self.batches
        settings = [setting.name for setting in protocol.settings]
        more = f" ... ({len(settings)} in all)" if len(settings) > 6 else ""
        severity = ", ".join(f"{kind} {value}" for kind, value in protocol.severity.items())
        return [
            f"protocol {protocol.name} of {protocol.robot}: {protocol.steps} steps, command {list(protocol.command)}, "
            f"{protocol.num_joints[0]} to {protocol.num_joints[1]} faulty joints, {severity}",
            f"scenarios {', '.join(map(str, protocol.scenarios))}; settings: {'; '.join(settings[:6])}{more}",
            f"{len(self.labels)} policies x {len(protocol.cells)} cells x {batches.episodes} robots, "
            f"in {batches.count} batches of {batches.num_envs} envs each",
            *self.detector_remarks,
        ]

    def missing(self, share: tuple[int, int] = (0, 1)) -> list[Part]:
        """Return the parts of a share (index, number of shares) whose result is not there yet."""
        index, count = share
        return [part for part in self.parts[index::count] if not part.path.is_file()]

    def simulate(self, parts: Sequence[Part]) -> None:
        """Simulate parts in this process and write the result of each."""
        from umc.evaluation.rollout import feet_sensor, run_faults
        from umc.mdp import fault_state
        from umc.tasks.parts import feet_of
        from umc.utils.console import progress_bar

        steps = self.protocol.steps
        with open_session(self.session) as (env, policies):
            known = feet_of(self.session.env_cfg)
            feet, names = (None, ()) if known is None else feet_sensor(env, known)
            joints = fault_state(env).joint_names  # in the engine's order, unless the robot's cfg has one
            with progress_bar(len(parts) * steps, "evaluating") as bar:
                for part in parts:
                    bar.set_description(f"{self.labels[part.policy]}, batch {part.batch + 1}/{self.batches.count}")
                    assignment = self.batches.assignment(part.batch)
                    self.session.checkpoints[part.policy].report_faults(env)
                    torch.manual_seed(self.protocol.seed + part.batch)  # of the noise, whatever was simulated before
                    run = run_faults(env, policies[part.policy], self.protocol, assignment, feet, bar)
                    part.save(run.select(slice(self.batches.size(part.batch))), joints, names)

    def simulate_on(self, executor: Executor, parts: Sequence[Part], arguments: Sequence[str]) -> None:
        """Simulate parts in processes of their own, which may run on machines without a disk in common.

        ``arguments`` are flags and overrides of ``umc evaluate`` besides checkpoints and protocol. Raises UmcError if a
        process fails; what others have finished by then is kept.
        """
        count = min(executor.count, len(parts))
        shares = [parts[number::count] for number in range(count)]
        for done, (number, result) in enumerate(run_all(executor, [self._job(one, arguments) for one in shares]), 1):
            for part in shares[number]:
                if part.output in result.files:  # of a worker that failed, too
                    with atomic_write(part.path) as file:
                        file.write(result.files[part.output])
            if result.code != 0:
                raise UmcError(
                    f"a worker ended with {result.code}: {result.output}; after a fix the same command goes on"
                )
            print(f"{count - done} of {count} workers still at work", flush=True)

    def _job(self, parts: Sequence[Part], arguments: Sequence[str]) -> Job:
        """Return a process that simulates parts and brings their files back."""
        inputs: dict[str, bytes] = {}
        checkpoints, policies = [], []
        for number, one in enumerate(self.session.checkpoints):
            inputs[f"{number}/{one.path.name}"] = one.path.read_bytes()
            if isinstance(one, External):
                inputs |= {f"{number}/{file.name}": file.read_bytes() for file in one.external.data}
                inputs[f"{number}/{DESCRIPTION}"] = one.described(one.path.name)
                policies.append(f"{FOLDER}/{number}/{DESCRIPTION}")
                continue
            checkpoints.append(f"{FOLDER}/{number}/{one.path.name}")
            agent = one.path.parent / AGENT_FILE
            if agent.is_file():
                inputs[f"{number}/{AGENT_FILE}"] = agent.read_bytes()
        plan = {
            "code": code_fingerprint(),
            "device": self.session.device.split(":")[0],
            "protocol": self.protocol.describe(),
            "episodes": self.batches.episodes,
            "num_envs": self.batches.num_envs,
            "parts": [(part.policy, part.batch, part.path.name) for part in parts],
        }
        inputs[PLAN] = json.dumps(plan).encode()
        own = ["--plan", f"{FOLDER}/{PLAN}", "--out", f"{FOLDER}/{OUT}"]
        own += ["--checkpoint", *checkpoints] if checkpoints else []
        own += ["--trust", "--policy", *policies] if policies else []  # the user has trusted them here
        command = (*process.UMC, "evaluate", *arguments, *own)
        return Job(command, inputs=inputs, outputs=tuple(part.output for part in parts), retries=RETRIES)

    def study(self) -> Study:
        """Put the results of all parts together."""
        session, cfg = self.session, self.session.env_cfg
        results, joints, feet = [], (), ()
        cells = len(self.protocol.cells)
        for number, one in enumerate(session.checkpoints):
            mine = (part.load(cells) for part in self.parts if part.policy == number)
            runs, names, feet_names = zip(*mine, strict=True)
            joints, feet = names[0], feet_names[0]
            results.append(PolicyResult(self.labels[number], self.groups[number], one.about, EpisodeBatch.join(runs)))
        return Study(
            protocol=self.protocol,
            step_dt=cfg.sim.dt * cfg.decimation,
            joint_names=joints,
            about=self._about(),
            policies=tuple(results),
            feet=feet,
        )

    def _conditions(self) -> dict[str, Any]:
        """Return everything that decides the results of all policies."""
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
            "files": [sha256(path) for path in _files(env)],
            "device": device,
            "versions": versions(),
            "code": code_fingerprint(),
            "others": [_digest(place, [".py"]) for place in self._other_packages(env)],
        }

    def _other_packages(self, env: Mapping[str, Any]) -> list[Path]:
        """Return modules and folders of the packages, other than UMC and Isaac Lab, whose functions are simulated."""
        task = gym.spec(self.session.task)
        words = {*_functions(env), *_functions([task.entry_point, dict(task.kwargs)])}
        words |= {one.external.description.file for one in self.session.checkpoints if isinstance(one, External)}
        kinds = {kind for scenario in self.protocol.scenarios for kind in self.protocol.scenario(scenario).kinds}
        modules = {word.partition(":")[0] for word in words if FUNCTION.match(word)}
        modules |= {type(find_kind(kind)).__module__ for kind in kinds}
        names = {module.partition(".")[0] for module in modules} - {umc.__name__, "__main__"}
        places: list[Path] = []
        for name in sorted(names):
            module = sys.modules.get(name)
            # what was made at run time has no file
            spec = find_spec(name) if module is None else module.__spec__
            if spec is not None and spec.submodule_search_locations:
                places += map(Path, spec.submodule_search_locations)
            elif spec is not None and spec.has_location:
                places.append(Path(str(spec.origin)))
        # the version stands for Isaac Lab's code
        installed = Path(isaaclab.__file__).parents[1]
        return [place for place in places if not (place.parent == installed and place.name.startswith("isaaclab"))]

    def _key(self, conditions: Mapping[str, Any], policy: str, batch: int) -> str:
        first = batch * self.batches.num_envs
        own = {"policy": policy, "first": first, "num_envs": self.batches.num_envs, "robots": self.batches.size(batch)}
        return fingerprint({**conditions, **own})[:KEY_LENGTH]

    def _about(self) -> dict[str, Any]:
        from umc.tasks.task_cfg import physics_name
        from umc.terrains import ground_name
        from umc.utils.provenance import git_state, now, versions

        session = self.session
        terrain = getattr(session.env_cfg.scene, "terrain", None)
        return {
            "task": session.task,
            "physics": physics_name(session.env_cfg),
            "ground": "none" if terrain is None else ground_name(terrain),
            "device": session.device,
            "num_envs": self.batches.num_envs,
            "batches": self.batches.count,
            "robots_per_cell": self.batches.episodes,
            "seed": session.env_cfg.seed,
            "quick": session.options.quick,
            **({"detector": "; ".join(self.detector_remarks)} if self.detector_remarks else {}),
            **AS_EVALUATED,
            **disturbances(self.protocol.noise, self.protocol.push),
            "command_line": shlex.join(sys.argv),
            "time": now(),
            "git": git_state(),
            "versions": versions(),
        }


def _files(values: Any) -> Iterator[Path]:
    """Yield the files of robots and detectors that a cfg names."""
    if isinstance(values, list | tuple):
        values = dict(enumerate(values))
    for key, value in values.items() if isinstance(values, Mapping) else ():
        if key in ("usd_path", "file") and isinstance(value, str) and Path(value).is_file():
            yield Path(value)
        yield from _files(value)


def _functions(values: Any) -> Iterator[str]:
    """Yield the names of functions and classes in a cfg, as ``module:name``."""
    if isinstance(values, str) and FUNCTION.match(values):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from _functions(value)
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _functions(value)


def code_fingerprint(package: Path | None = None) -> str:
    """Return the SHA-256 of all source and data that may decide a result, of this package or of a copy."""
    package = package or Path(umc.__file__).parent
    return _digest(package, [".py", ".usda", ".yaml", ".json"], NOT_SIMULATED)


def _digest(place: Path, suffixes: Sequence[str], without: Sequence[str] = ()) -> str:
    """Return the SHA-256 of the files of a package, or of a single module; rooms and files may be left out."""
    digest = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        name = file.relative_to(place).as_posix()
        left_out = any(name == room or name.startswith(f"{room}/") for room in without)
        if not left_out and file.suffix in suffixes:
            digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def read_share(text: str) -> tuple[int, int]:
    """Read ``2/8``, the second of eight shares, as its index, from 0, and the number of shares."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UmcError(f"--share {text} is not a share; 2/8 is the second of eight")
    return int(number) - 1, int(count)
