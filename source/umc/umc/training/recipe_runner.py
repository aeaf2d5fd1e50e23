# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``scripts/train.py --recipe``: all phases of a recipe, one after the other, resumable at any point."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umc.rl.agents import AGENTS
from umc.rl.checkpoint import CHECKPOINT_NAME, checkpoints_in, read_checkpoint, write_checkpoint
from umc.rl.pretrained import find_pretrained, is_pretrained
from umc.rl.watchdog import STALLED
from umc.tasks.registry import checked_checkpoint
from umc.training.recipe import Phase, Recipe, Source, read_recipe
from umc.training.recipe_progress import Overall, duration
from umc.utils.cli import Parser
from umc.utils.console import quiet
from umc.utils.errors import UmcError
from umc.utils.io import sha256, write_json
from umc.utils.logged_process import run_logged
from umc.utils.naming import entry_point, experiment_folder, experiment_name
from umc.utils.process import ChildFailed, one_at_a_time, run_umc, typed
from umc.utils.provenance import now

STATE = "state.json"
"""What is done of a recipe, in its folder under ``logs/recipes``."""

FORMAT = 1
"""Version of its layout."""

MAX_STALLS = 3
"""How often in a row a phase may hang without a new checkpoint."""

STAMP = re.compile(r"[\d_-]+")
"""What stands before the name of a run in that of its folder."""


def run_recipe(argv: list[str]) -> int:
    """Runs a recipe from start to finish, or goes on where it stopped.

    Args:
        argv: Arguments of ``scripts/train.py``.

    Returns:
        0.

    Raises:
        UmcError: If the command line or the recipe is wrong.
        ChildFailed: If a phase did not end with 0.
    """
    options = _options(argv)
    with quiet():
        recipe = read_recipe(options.recipe, options.seed, options.device)
        check_recipe(recipe)
    again = [token for token in argv if token != "--restart"]  # which would begin anew
    run = RecipeRun(recipe, options.logs, typed("train", again))
    if options.show:
        for phase in recipe.phases:
            print(f"{phase.title}: {typed('train', run.arguments(phase, None))}")
        return 0
    with one_at_a_time(run.folder, options.recipe):
        if options.restart:
            run.restart()
        run.train()
    run.summary()
    if options.evaluate:
        run_umc("evaluate", run.evaluation())
    else:
        print(f"evaluate it with: {typed('evaluate', run.evaluation())}", flush=True)
    return 0


def _options(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog="train.py", allow_abbrev=False)
    add = parser.add_argument
    add("--recipe", help="name of a recipe, or path of a YAML file")
    add("--logs", type=Path, default=Path("logs"))
    add("--device")
    add("--seed", type=int)
    add("--restart", action="store_true")
    add("--evaluate", action="store_true")
    add("--show", action="store_true")
    options, rest = parser.parse_known_args(argv)
    if rest:
        raise UmcError(
            f"{rest[0]} does not go with --recipe, which says it itself: copy the recipe to a file of your own, change "
            "it there and give its path (--logs, --device, --seed, --restart, --evaluate and --show do go with it)"
        )
    if options.seed is not None and options.seed < 0:
        raise UmcError(f"--seed is {options.seed}; it has to be 0 or more")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UmcError("a recipe starts its phases by itself; start it without torchrun")
    return options


def check_recipe(recipe: Recipe) -> None:
    """Resolves every phase without a simulator, so that nothing wrong shows up hours later.

    Args:
        recipe: The recipe.

    Raises:
        UmcError: If a task, an agent, a preset or an override does not exist, or the device is not there.
    """
    from umc.tasks.registry import checked_agent
    from umc.training.task_cfg import pick_device, resolve_cfgs

    pick_device(recipe.device)
    for phase in recipe.phases:
        try:
            agent, _ = checked_agent(phase.agent, phase.task, recipe.library)
            resolve_cfgs(phase.task, agent, list(phase.overrides))
        except UmcError as error:
            raise UmcError(f"recipe {recipe.name}: {phase.title}: {error}") from error


class RecipeRun:
    """A recipe with its state on the disk.

    Args:
        recipe: The recipe.
        logs: Folder of all runs.
        command: Command that goes on with it, for the screen.
    """

    def __init__(self, recipe: Recipe, logs: Path, command: str) -> None:
        self.recipe, self.logs, self.command = recipe, logs, command
        self.folder = logs / "recipes" / f"{recipe.name}_seed{recipe.seed}"
        self.state = self._read()

    def _read(self) -> dict[str, Any]:
        path = self.folder / STATE
        if not path.is_file():
            return {"format": FORMAT, "recipe": self.recipe.name, "attempt": 1, "phases": []}
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise UmcError(f"{path} is no JSON; start the recipe anew with --restart") from error
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise UmcError(f"{path} is of another version of umc; start the recipe anew with --restart")
        return state

    def restart(self) -> None:
        """Forgets what is done; the runs themselves stay where they are."""
        attempt = self.state["attempt"] + (1 if self.state["phases"] else 0)
        self.state = {"format": FORMAT, "recipe": self.recipe.name, "attempt": attempt, "phases": []}

    def train(self) -> None:
        """Trains what is not done yet.

        Raises:
            UmcError: If the recipe was changed in a phase that is done, or a phase has nothing to start from.
            ChildFailed: If a phase did not end with 0; what it saved is gone on from next time. One whose simulation
                hung (``umc.rl.watchdog``) is gone on with at once, unless it gets no further.
        """
        self._check_done()
        phases = self.recipe.phases
        print(f"recipe {self.recipe.name}: {len(phases)} phases, seed {self.recipe.seed}; state in {self.folder}")
        overall = Overall(phases)
        for number, phase in enumerate(phases):
            entry = self.state["phases"][number] if number < len(self.state["phases"]) else None
            if entry is not None and entry["status"] == "done":
                print(f"[{number + 1}/{len(phases)}] {phase.title}: done before, {entry['checkpoint']}")
                continue
            self._train(number, phase, overall)

    def _train(self, number: int, phase: Phase, overall: Overall) -> None:
        entry, files, stalls = self._entry(number), self._checkpoints(number), 0
        title = f"[{number + 1}/{len(self.recipe.phases)}] {phase.title}"
        while (done := _done(files[-1]) if files else 0) < phase.last_iteration:
            words = f"going on after iteration {done}" if done > phase.behind else "starting"
            print(f"{title}: {words}, {phase.last_iteration - max(done, phase.behind)} iterations", flush=True)
            entry.update(status="running", fingerprint=self.recipe.fingerprint(number + 1))
            entry.setdefault("run_name", self._run_name(number))
            entry.setdefault("started_at", now())
            self._write()
            overall.begin(number)
            started, before, hung = time.monotonic(), files, False
            try:
                arguments = self.arguments(phase, files[-1] if files else None)
                log = self.folder / f"phase{number + 1}.log"
                run_logged("train", arguments, log, lambda line: overall.show(line, title))
            except (ChildFailed, KeyboardInterrupt) as failure:
                stalls = stalls + 1 if self._checkpoints(number) == before else 1
                hung = isinstance(failure, ChildFailed) and failure.code == STALLED
                if not hung or stalls == MAX_STALLS:
                    print(f"go on with: {self.command}", flush=True)
                    raise
            finally:
                entry["seconds"] = round(entry.get("seconds", 0.0) + time.monotonic() - started, 1)
                self._write()
            files = self._checkpoints(number)
            if not hung and (not files or _done(files[-1]) < phase.last_iteration):
                raise UmcError(f"{phase.title} ended without its last checkpoint; look at its messages above")
        entry.update(
            status="done", fingerprint=self.recipe.fingerprint(number + 1), checkpoint=str(files[-1]), ended_at=now()
        )
        self._write()

    def _checkpoints(self, number: int) -> list[Path]:
        run = self._run_folder(number)
        return [] if run is None else checkpoints_in(run)

    def arguments(self, phase: Phase, resumed: Path | None) -> list[str]:
        """Arguments of scripts/train.py for a phase.

        Args:
            phase: The phase.
            resumed: Checkpoint of its run, if that has one already.

        Returns:
            Flags and overrides.

        Raises:
            UmcError: If it has nothing to start from.
        """
        recipe = self.recipe
        flags = ["--task", phase.task, "--agent", entry_point(phase.agent, recipe.library), "--logs", str(self.logs)]
        flags += ["--max_iterations", str(phase.last_iteration), "--seed", str(phase.seed)]
        if phase.num_envs is not None:
            flags += ["--num_envs", str(phase.num_envs)]
        if recipe.device is not None:
            flags += ["--device", recipe.device]
        if resumed is not None or phase.goes_on:
            flags += ["--resume", "--checkpoint", str(resumed or self._start(phase))]
        else:
            start = self._start(phase)
            flags += ["--run_name", self._run_name(self.recipe.phases.index(phase))]
            flags += ["--checkpoint", str(start)] if start is not None else []
        return [*flags, *phase.overrides]

    def _start(self, phase: Phase) -> Path | str | None:
        """Checkpoint that a phase starts from, as --checkpoint takes it."""
        number = self.recipe.phases.index(phase)
        if phase.source is not None:
            return self._from_source(phase, phase.source)
        if number == 0:
            return None
        entry = self.state["phases"][number - 1] if number <= len(self.state["phases"]) else None
        # before it has run there is only a word for it
        return Path(entry["checkpoint"]) if entry and entry["status"] == "done" else f"<last of phase {number}>"

    def _from_source(self, phase: Phase, source: Source) -> Path:
        if source.path is not None:
            if is_pretrained(source.path):
                agent = AGENTS[phase.agent].stage1 or phase.agent
                agent = agent.removeprefix("nm_") if source.fold else agent
                path, _ = find_pretrained(source.path, self.recipe.robot, agent, source.stage)
            else:
                path = checked_checkpoint(source.path)
            assert path is not None
            return self._folded(path) if source.fold else path
        assert source.recipe is not None
        other = read_recipe(source.recipe, self.recipe.seed)
        state = RecipeRun(other, self.logs, "").state["phases"]
        done = [
            entry
            for one, entry in zip(other.phases, state, strict=False)
            if one.stage == source.stage and entry["status"] == "done"
        ]
        if len(done) < sum(one.stage == source.stage for one in other.phases) or not done:
            raise UmcError(
                f"{phase.title} starts from Stage {source.stage} of recipe {other.name}, which is not done under "
                f"{self.logs}; run it first: scripts/train.py --recipe {other.name}"
            )
        path = Path(done[-1]["checkpoint"])
        return self._folded(path) if source.fold else path

    def _folded(self, path: Path) -> Path:
        from umc.rl.transfer import fold_flag_into_bias  # imports torch

        out = self.folder / f"folded_{sha256(path)[:12]}.pt"
        if not out.is_file():
            write_checkpoint(out, fold_flag_into_bias(read_checkpoint(path), path))
        return out

    def _run_name(self, number: int) -> str:
        """Name of the run of a phase; one that goes on with the run before it shares its name."""
        first = self._chain(number)[0]
        begun: list[dict[str, Any]] = self.state["phases"][first : first + 1]
        if begun and "run_name" in begun[0]:
            return begun[0]["run_name"]
        name = f"{self.recipe.name}_phase{first + 1}"
        # earlier versions, which did not note names, began runs without the seed
        fresh = not begun or "started_at" not in begun[0]
        # a phase's own seed is the same whatever the recipe's, which then has to tell the runs apart
        if fresh and self._seeds(number) != {self.recipe.seed}:
            name += f"_seed{self.recipe.seed}"
        attempt = self.state["attempt"]
        return name if attempt == 1 else f"{name}_attempt{attempt}"

    def _chain(self, number: int) -> range:
        """Phases of one run: from the one that began it up to this one's last."""
        phases = self.recipe.phases
        first, end = number, number + 1
        while phases[first].goes_on:
            first -= 1
        while end < len(phases) and phases[end].goes_on:
            end += 1
        return range(first, end)

    def _run_folder(self, number: int) -> Path | None:
        """Run folder of a phase: the newest of its name that holds a checkpoint."""
        phase = self.recipe.phases[number]
        experiment = experiment_name(self.recipe.robot, phase.agent, phase.stage)
        place = experiment_folder(self.logs, experiment, self.recipe.library)
        name, seeds = f"_{self._run_name(number)}", self._seeds(number)
        # a time stamp and the name: *_tiny_phase1 is also what a recipe my_tiny has
        found = [run for run in place.glob(f"*{name}") if STAMP.fullmatch(run.name.removesuffix(name))]
        runs = [run for run in found if _seed(run) in seeds and checkpoints_in(run)]
        return max(runs, key=lambda run: run.name, default=None)

    def _seeds(self, number: int) -> set[int]:
        """Seeds that the run of a phase may have; other seeds of the recipe use the same names."""
        return {self.recipe.phases[one].seed for one in self._chain(number)}

    def _entry(self, number: int) -> dict[str, Any]:
        phases: list[dict[str, Any]] = self.state["phases"]
        while len(phases) <= number:
            phases.append({"status": "waiting"})
        phases[number].setdefault("title", self.recipe.phases[number].title)
        return phases[number]

    def _check_done(self) -> None:
        for number, entry in enumerate(self.state["phases"]):
            gone = number >= len(self.recipe.phases)
            if gone or entry.get("fingerprint") not in (None, self.recipe.fingerprint(number + 1)):
                raise UmcError(
                    f"recipe {self.recipe.name} has changed since its phase {number + 1} ({entry['title']}) was "
                    "trained; undo the change, start anew with --restart, or save the changed recipe under another name"
                )
            if entry["status"] == "done" and not Path(entry["checkpoint"]).is_file():
                raise UmcError(f"{entry['checkpoint']} is gone; start the recipe anew with --restart")

    def _write(self) -> None:
        write_json(self.folder / STATE, self.state)

    @property
    def checkpoint(self) -> Path:
        """Last checkpoint of the last phase."""
        return Path(self.state["phases"][-1]["checkpoint"])

    def summary(self) -> None:
        """Prints what was trained, and how it can be shipped."""
        print(f"recipe {self.recipe.name} is through:")
        total = 0.0
        for phase, entry in zip(self.recipe.phases, self.state["phases"], strict=True):
            seconds = entry.get("seconds", 0.0)
            total += seconds
            print(f"  {phase.title}: {phase.iterations} iterations, {duration(seconds)}, {entry['checkpoint']}")
        print(f"  in all: {duration(total)}")
        print(f"checkpoint: {self.checkpoint}")
        ship = ["python", "-m", "tools.publish_policy", str(self.checkpoint), "--recipe", self.recipe.name]
        print(f"ship it with: {shlex.join(ship)} --metrics <report.json>")

    def evaluation(self) -> list[str]:
        """Arguments of scripts/evaluate.py for the policy.

        Returns:
            Flags and overrides: the engine that it was trained on.
        """
        wanted: Mapping[str, Any] = self.recipe.evaluation
        arguments = ["--checkpoint", str(self.checkpoint)]
        if wanted.get("num_envs"):
            arguments += ["--num_envs", str(wanted["num_envs"])]
        if self.recipe.device:
            arguments += ["--device", self.recipe.device]
        presets = [token for token in self.recipe.phases[-1].overrides if token.startswith("physics=")]
        return [*arguments, *presets, *(wanted.get("overrides") or [])]


def _seed(run: Path) -> int | None:
    """Seed of a run; None where it was killed before it wrote its record."""
    try:
        return json.loads((run / "run.json").read_text(encoding="utf-8")).get("seed")
    except (OSError, ValueError):
        return None


def _done(checkpoint: Path) -> int:
    """Iterations behind a checkpoint: its name counts them from 0."""
    match = CHECKPOINT_NAME.fullmatch(checkpoint.name)
    assert match is not None
    return int(match[1]) + 1
