# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps of trainings as data: agents x seeds x overrides, from files in ``config/sweeps``; others run them.

The files are those of :mod:`umc.evaluation.grid`: what names an ablation's agents serves to train them and to compare
them. Evaluation reads ``grid`` and leaves ``seeds`` and ``overrides`` alone; training does it the other way round.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from umc.rl.agents import AGENTS
from umc.rl.checkpoint import checkpoints_in
from umc.tasks.registry import checked_agent, checked_task
from umc.training.plan import stage1_overrides
from umc.utils.config import merged, read_config_file, read_overrides
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, entry_point, stage1_task, task_parts
from umc.utils.provenance import FINISHED, read_record

KEYS = ("name", "agents", "network", "seeds", "overrides", "protocol", "scenarios", "episodes", "grid")
"""Keys of a sweep file; those from ``protocol`` on are the evaluation's."""

VARIED = "overrides."
"""Before the key of an override in a command line: ``sweep.overrides.agent.algorithm.gamma=[0.98,0.99]``."""

KEY_LENGTH = 8
"""Hexadecimal digits that tell a run of a sweep from the others."""


@dataclasses.dataclass(frozen=True)
class Job:
    """One training of a sweep."""

    sweep: str
    task: str
    agent: str
    library: str
    seed: int
    varied: Mapping[str, Any]
    """What this run overrides and others do not, by key."""
    common: tuple[str, ...]
    """Flags and overrides of all runs, as typed."""
    checkpoint: str | None = None
    """Checkpoint that it was told to start from."""
    after: Job | None = None
    """Stage 1 that it goes on from."""

    @property
    def label(self) -> str:
        """What the table calls it."""
        stage = f"Stage {task_parts(self.task)[1]}"
        return ", ".join([self.agent, stage, f"seed {self.seed}", *(f"{k}={v}" for k, v in self.varied.items())])

    @property
    def tokens(self) -> list[str]:
        """Its own overrides as a command line has them."""
        return [f"{key}={_written(value)}" for key, value in self.varied.items()]

    @property
    def key(self) -> str:
        """Tells it from every other run. How long it is trained and where does not count: a run may be prolonged."""
        says = [self.task, self.agent, self.library, self.seed, self.tokens, _lasting(self.common), self.checkpoint]
        says.append(None if self.after is None else self.after.key)
        return hashlib.sha256(json.dumps(says).encode()).hexdigest()[:KEY_LENGTH]

    @property
    def run_name(self) -> str:
        """End of its run folder's name."""
        return f"{self.sweep}-{self.key}"

    def folder(self, logs: Path) -> Path | None:
        """Its newest run folder; None before its first start."""
        found = [path.parent for path in logs.glob(f"{self.library}/*/*_{self.run_name}/run.json")]
        return max(found, key=lambda path: path.name, default=None)

    def last_checkpoint(self, logs: Path) -> Path | None:
        """Its last checkpoint; None where there is none yet."""
        folder = self.folder(logs)
        return (checkpoints_in(folder) or [None])[-1] if folder else None

    def iterations(self, logs: Path) -> int | None:
        """Iterations behind its last checkpoint; None where there is none yet."""
        last = self.last_checkpoint(logs)
        return None if last is None else int(last.stem.split("_")[1]) + 1

    def done(self, logs: Path) -> bool:
        """Whether it has been trained to the end that is asked for."""
        folder = self.folder(logs)
        if folder is None or self.last_checkpoint(logs) is None:
            return False
        record = read_record(folder)
        asked, total = _value_of("--max_iterations", self.common), record["max_iterations"]
        # one that died between its last checkpoint and the last word in its record has nothing left to train
        ended = record.get("status") == FINISHED or (self.iterations(logs) or 0) >= total
        return ended and total >= int(asked or 0)

    def arguments(self, logs: Path) -> list[str]:
        """Arguments of ``scripts/train.py``, which start it or go on with it."""
        same = ["--task", self.task, "--agent", entry_point(self.agent, self.library), "--logs", str(logs)]
        last = self.last_checkpoint(logs)
        if last is not None:
            return [*same, *self.common, "--resume", "--checkpoint", str(last)]
        own = [*same, "--seed", str(self.seed), "--run_name", self.run_name, *self.common, *self.tokens]
        start = self.checkpoint
        if self.after is not None:
            found = self.after.last_checkpoint(logs)
            if found is None:
                raise UmcError(f"the Stage 1 of {self.label} has no checkpoint; start the sweep again")
            start = str(found)
        return own if start is None else [*own, "--checkpoint", start]


def read_training_sweep(name: str, changes: Sequence[str]) -> dict[str, Any]:
    """Read a sweep file for training.

    Args:
        name: Name of a file in ``config/sweeps``, or path of one.
        changes: Tokens such as ``sweep.seeds=[1,2]``.

    Returns:
        ``name``, ``agents`` (empty: the command line's), ``seeds``, and ``overrides``, lists of values by key.

    Raises:
        UmcError: If there is no such file, or it makes no sense.
    """
    content = read_config_file("sweep", name)
    if not isinstance(content, dict) or "name" not in content:
        raise UmcError(f"{name} is no sweep: name is missing")
    # keys of overrides have dots of their own
    own = read_overrides(changes, "sweep")
    varied = {key.removeprefix(VARIED): own.pop(key) for key in list(own) if key.startswith(VARIED)}
    content = merged(content, own)
    content["overrides"] = {**(content.get("overrides") or {}), **varied}
    wrong = sorted(set(content) - set(KEYS))
    if wrong:
        raise UmcError(f"sweep {content['name']}: unknown {', '.join(wrong)}; it can have {', '.join(KEYS)}")
    seeds, overrides = content.get("seeds", [None]), content["overrides"]
    if not isinstance(seeds, list) or not seeds or not all(seed is None or _is_seed(seed) for seed in seeds):
        raise UmcError(f"seeds of sweep {content['name']} must be a list of numbers, 0 or more")
    if len(set(seeds)) != len(seeds):
        raise UmcError(f"seeds of sweep {content['name']} hold one twice; name each once")
    if not isinstance(overrides, dict) or not all(isinstance(values, list) and values for values in overrides.values()):
        raise UmcError(f"overrides of sweep {content['name']} must be lists of values by key")
    network = content.get("network", "transformer")
    agents = [agent.replace("NETWORK", network) for agent in content.get("agents") or ()]
    return {"name": content["name"], "agents": agents, "seeds": seeds, "overrides": overrides}


def jobs_of(
    sweep: Mapping[str, Any],
    task: str,
    agent: str,
    library: str | None,
    common: Sequence[str],
    checkpoint: str | None,
    default_seed: int,
) -> list[Job]:
    """All trainings of a sweep, each after the Stage 1 that it needs.

    Every seed gets a Stage 1 of its own, so that seeds are independent of each other from the first step on. Agents
    that have one Stage 1 in common (ablations) share it, seed by seed.

    Args:
        sweep: As from :func:`read_training_sweep`.
        task: Gym id.
        agent: Agent where the sweep names none.
        library: RL library; the default one if None.
        common: Flags and overrides of all runs.
        checkpoint: Checkpoint that all runs start from; no Stage 1 is trained then.
        default_seed: Seed where the sweep names none.

    Returns:
        The trainings; Stage 1 first.

    Raises:
        UmcError: If task or an agent is unknown.
    """
    task = checked_task(task)
    stage = task_parts(task)[1]
    first: dict[str, Job] = {}
    rest: list[Job] = []
    keys, values = list(sweep["overrides"]), list(sweep["overrides"].values())
    agents: list[str] = sweep["agents"] or [agent]
    seeds: list[int | None] = sweep["seeds"]
    combinations: list[tuple[Any, ...]] = list(itertools.product(*values))
    for name, seed, combination in itertools.product(agents, seeds, combinations):
        _, spec = checked_agent(name, task, library)
        seed = default_seed if seed is None else seed
        varied = dict(zip(keys, combination, strict=True))
        job = Job(
            sweep=sweep["name"],
            task=task,
            agent=spec.name,
            library=library or LIBRARIES[0],
            seed=seed,
            varied=varied,
            common=tuple(common),
            checkpoint=checkpoint,
        )
        if stage == 2 and spec.stage1 is not None and checkpoint is None:
            kept = set(stage1_overrides(job.tokens))
            before = dataclasses.replace(
                job,
                task=stage1_task(task),
                agent=AGENTS[spec.stage1].name,
                varied={key: value for key, value in varied.items() if f"{key}={_written(value)}" in kept},
                common=tuple(stage1_overrides(list(common))),
            )
            job = dataclasses.replace(job, after=first.setdefault(before.key, before))
        rest.append(job)
    return [*first.values(), *rest]


def _lasting(common: Sequence[str]) -> list[str]:
    """What of the common arguments makes another run of it."""
    skip, kept = False, []
    for token in common:
        if skip:
            skip = False
        elif token in ("--max_iterations", "--device"):
            skip = True
        elif not token.startswith(("--max_iterations=", "--device=")):
            kept.append(token)
    return kept


def _value_of(flag: str, tokens: Sequence[str]) -> str | None:
    """Value of a flag among tokens."""
    for place, token in enumerate(tokens):
        if token == flag and place + 1 < len(tokens):
            return tokens[place + 1]
        if token.startswith(f"{flag}="):
            return token.split("=", 1)[1]
    return None


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _written(value: Any) -> str:
    """A value as an override token has it."""
    return value if isinstance(value, str) else json.dumps(value).replace(" ", "")
