# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``train.py --recipe``: all phases of a recipe, one after the other, resumable at any point."""

from __future__ import annotations

import argparse
import math
import shlex
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from umc.rl.agents import AGENTS, BASELINE_PREFIX
from umc.rl.checkpoint import (
    CHECKPOINT_NAME,
    checkpoint_info,
    checkpoints_in,
    iterations_of,
    read_checkpoint,
    require_match,
    write_checkpoint,
)
from umc.rl.critics import LIVE_GROUP, MLP_CRITIC_KEY, use_mlp_critic
from umc.rl.pretrained import find_pretrained, is_pretrained
from umc.rl.watchdog import HUNG
from umc.tasks.registry import checked_agent, checked_checkpoint
from umc.training.arguments import parse
from umc.training.recipe import BEFORE, Phase, Recipe, Source, Teacher, Text, read_recipe
from umc.utils.cli import Parser, as_flags, check_seed, path
from umc.utils.config import FileModel, merged_overrides, override_key, validated
from umc.utils.console import duration, quiet, timed
from umc.utils.distributed import ranks_from_env
from umc.utils.errors import UmcError
from umc.utils.io import sha256, write_json
from umc.utils.naming import LIBRARIES, entry_point, experiment_folder, experiment_name, run_stamp
from umc.utils.outputs import require_writable
from umc.utils.process import ChildFailed, command_line, lock_folder, run_umc
from umc.utils.provenance import LINE_EVERY_S, PROGRESS_FILE, now, read_progress, read_record
from umc.utils.text import read_json

STATE = "state.json"
FORMAT = 2
"""What is done of a recipe, in its folder under ``logs/recipes``, and the version of its layout."""

ROLLOUT = "agent.num_steps_per_env"
"""Override that a resumed run cannot change, as its curriculum counts in it."""

KEEP_EVERY_S = 10.0
"""Time between two writes of the time that a phase has taken [s]: what is lost if this process is killed."""

MAX_HANGS = 3
"""How often in a row a phase may hang without a new checkpoint."""


class PhaseState(FileModel):
    """What is done of a phase."""

    model_config = ConfigDict(frozen=False)

    title: Text
    status: Literal["waiting", "running", "done"]
    run_dir: Text
    fingerprint: str
    started_at: str
    ended_at: str | None = None
    seconds: Annotated[float, Field(ge=0.0)] = 0.0
    """Time that it has taken, in all its starts [s]."""
    checkpoint: Text | None = None

    @model_validator(mode="after")
    def _has_checkpoint(self) -> Self:
        if self.status == "done" and not self.checkpoint:
            raise ValueError("checkpoint of a phase that is done is missing")
        if self.checkpoint and not CHECKPOINT_NAME.fullmatch(Path(self.checkpoint).name):
            raise ValueError(f"checkpoint {self.checkpoint} is no model_<iteration>.pt")
        return self


class RecipeState(FileModel):
    """The file :data:`STATE`; a later layout has a higher format."""

    format: Literal[FORMAT]  # pyright: ignore[reportInvalidTypeForm]
    recipe: str
    phases: list[PhaseState]

    @model_validator(mode="after")
    def _one_after_the_other(self) -> Self:
        if any(phase.status != "done" for phase in self.phases[:-1]):
            raise ValueError("a phase that is not done is followed by another")
        return self


def run_recipe(argv: list[str], check: Callable[[Recipe, bool], None] = lambda *_: None) -> int:
    """Run a recipe from start to finish, or resume it.

    Before anything is trained, ``check`` gets it, and whether this machine is to train or evaluate it.
    """
    options = _options(argv)
    with timed("checking the recipe"), quiet():
        recipe = read_recipe(options.recipe, options.seed, options.device)
        again = [token for token in argv if token != "--restart"]  # which would start over
        run = RecipeRun(recipe, options.logs, command_line("train", again), options.restart, options.trust)
        check_recipe(recipe, () if options.show else run.left)
        check(recipe, not options.show and (bool(run.left) or options.evaluate))
    if options.show:
        run.shows = True
        for number, phase in enumerate(recipe.phases):
            print(f"{phase.title}: {command_line('train', run.arguments(number, None))}")
        return 0
    with lock_folder(run.folder, f"trains recipe {options.recipe} in {run.folder}", inherit=True):
        run.train()
    run.summary()
    if options.evaluate:
        run_umc("evaluate", run.evaluation())
    else:
        print(f"evaluate it with: {command_line('evaluate', run.evaluation())}", flush=True)
    return 0


def _options(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog="train.py", allow_abbrev=False)
    add = parser.add_argument
    add("--recipe", help="name of a recipe, or path of a YAML file")
    add("--logs", type=path, default=Path("logs"))
    add("--device")
    add("--seed", type=int)
    add("--trust", action="store_true")
    add("--restart", action="store_true")
    add("--evaluate", action="store_true")
    add("--show", action="store_true")
    add("--headless", action="store_true")  # accepted and ignored
    options, rest = parser.parse_known_args(argv)
    if rest:
        raise UmcError(
            f"{rest[0]} does not go with --recipe, which sets it: copy the recipe to a file of your own, change it "
            "there and give its path (--logs, --device, --seed, --trust, --restart, --evaluate and --show go with it)"
        )
    check_seed(options.seed)
    if not options.show:
        require_writable(options.logs, "--logs")
    if ranks_from_env().is_distributed:
        raise UmcError("a recipe starts its phases by itself; start it without torchrun")
    return options


def check_recipe(recipe: Recipe, left: Collection[int] | None = None) -> None:
    """Resolve every phase without a simulator, so that no mistake shows up hours later; raise UmcError for one.

    This machine has to be able to run the phases of the numbers ``left``, without them all.
    """
    from umc.tasks.task_cfg import pick_device
    from umc.training.curriculum import add_curriculum
    from umc.training.plan import add_launcher_options, check_cfgs, check_run, fixed_keys, new_cfgs

    # nothing runs here where all is done or only shown
    runs = left is None or bool(left)
    wanted = recipe.device if runs else "cpu"
    device = pick_device(wanted)
    cfg_before = None
    for number, phase in enumerate(recipe.phases):
        try:
            agent, spec = checked_agent(phase.agent, phase.task, recipe.library)
            sizes = as_flags(max_iterations=phase.last_iteration, num_envs=phase.num_envs, device=wanted)
            argv = [*as_flags(task=phase.task, agent=agent), *sizes, *phase.overrides]
            request = parse(argv, writes=False)
            add_launcher_options(request, argv)
            env_cfg, agent_cfg, _ = new_cfgs(request, device)
            if left is None or number in left:
                check_run(request, env_cfg, agent_cfg, device, imitates=phase.teacher is not None)
            else:
                check_cfgs(env_cfg, agent_cfg)
            if cfg_before is not None and phase.source is None:
                _check_weights(agent_cfg, cfg_before, phase, recipe.phases[number - 1].stage)
            cfg_before = agent_cfg
            before = recipe.phases[number - 1].overrides if phase.resumes else phase.overrides
            steps = [token for token in phase.overrides if token.startswith(ROLLOUT) and token not in before]
            if fixed := [*fixed_keys(phase.overrides, before), *map(override_key, steps)]:
                raise UmcError(
                    f"it resumes the phase before it and keeps its {fixed[0]}; leave that out, or add 'from: {BEFORE}'"
                )
            add_curriculum(env_cfg, agent_cfg, spec)
            if phase.teacher is not None and recipe.library != LIBRARIES[0]:
                raise UmcError(f"a teacher needs library: {LIBRARIES[0]}")
        except UmcError as error:
            raise UmcError(f"recipe {recipe.name}: {phase.title}: {error}") from error


def _check_weights(agent_cfg: Any, before: Any, phase: Phase, stage: int) -> None:
    """Raise UmcError for a phase whose networks cannot take the weights of the phase before it, of ``stage``."""
    from isaaclab.utils import to_dict

    from umc.rl.transfer import check_flagless, check_widening, reads_flag  # imports torch

    if before.mlp_critic and MLP_CRITIC_KEY not in map(override_key, phase.overrides):
        agent_cfg.mlp_critic = True  # as its plan does
    for cfg in (before, agent_cfg):
        use_mlp_critic(cfg)
    old, new = _networks(to_dict(before)), _networks(to_dict(agent_cfg))
    differing = [key for key in old | new if old.get(key) != new.get(key)]
    if before.critic_sees_faults and not agent_cfg.critic_sees_faults:
        differing.append("agent.critic_sees_faults")
    flagged, was_flagged = reads_flag(to_dict(agent_cfg)), reads_flag(to_dict(before))
    if flagged != was_flagged and (flagged or stage != 1):
        differing.append("agent.obs_groups.actor")
    if differing:
        raise UmcError(f"it loads the weights of the phase before it and keeps its {differing[0]}; give both the same")
    if agent_cfg.critic_sees_faults and not before.critic_sees_faults:
        check_widening(to_dict(agent_cfg))
    if was_flagged and not flagged:
        check_flagless(to_dict(agent_cfg))


def _networks(agent: dict[str, Any]) -> dict[str, Any]:
    """Return by override key what decides whether weights fit, but for the fault flag of the actor."""
    groups = [name for name in agent["obs_groups"]["critic"] if name != LIVE_GROUP]
    actor, own = agent["actor"], agent["obs_groups"]["actor"]
    noise = actor.get("distribution_cfg") or {}
    return {
        **{f"agent.actor.distribution_cfg.{name}": noise.get(name) for name in ("class_name", "std_type")},
        MLP_CRITIC_KEY: agent["critic"].get("class_name"),
        **{
            f"agent.{reader}.{field}": value
            for reader in ("actor", "critic")
            for field, value in agent[reader].items()
            if field not in ("class_name", "distribution_cfg", "mask_value")
        },
        "agent.obs_groups.actor": [one for one in own if one not in (actor.get("mask_group"), actor.get("flag_group"))],
        "agent.obs_groups.critic": groups,
    }


class RecipeRun:
    """A recipe with its state on the disk; ``command`` resumes it, ``restart`` starts over, whatever the state is."""

    def __init__(self, recipe: Recipe, logs: Path, command: str, restart: bool = False, trust: bool = False) -> None:
        self.recipe, self.logs, self.command, self.trust = recipe, logs, command, trust
        self.folder = logs / "recipes" / f"{recipe.name}_seed{recipe.seed}"
        self.state = self._state(restart)
        self.shows = False
        """Whether phases are only shown: what is not there yet is named in angle brackets."""
        self._last_line = -math.inf
        self._last_iteration = 0
        self._kept = time.monotonic()
        """When the time of the running phase was written [s]."""

    def _state(self, restart: bool) -> RecipeState:
        path, fix = self.folder / STATE, "start over with --restart"
        if restart or not path.exists():  # a restart forgets the runs, which stay where they are
            return RecipeState(format=FORMAT, recipe=self.recipe.name, phases=[])
        state = read_json(path, fix)
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise UmcError(f"{path} is of another version of umc; {fix}")
        return validated(RecipeState, state, f"{path} is damaged ({fix})")

    @property
    def left(self) -> list[int]:
        """Numbers of the phases that are not done, from 0."""
        return [number for number in range(len(self.recipe.phases)) if not self._done(number)]

    def train(self) -> None:
        """Train what is not done yet; a phase whose simulation hung is resumed at once, any other failure is raised."""
        self._check_done()
        self._check_starts()
        phases = self.recipe.phases
        print(f"recipe {self.recipe.name}: {len(phases)} phases, seed {self.recipe.seed}; state in {self.folder}")
        for number, phase in enumerate(phases):
            if self._done(number):
                print(f"[{number + 1}/{len(phases)}] {phase.title}: done before, {self._checkpoint(number)}")
            else:
                self._train(number, phase)

    def _train(self, number: int, phase: Phase) -> None:
        entry = self._entry(number)
        run, hangs = Path(entry.run_dir), 0
        title = f"[{number + 1}/{len(self.recipe.phases)}] {phase.title}"
        files = checkpoints_in(run)
        while (done := iterations_of(files[-1]) if files else 0) < phase.last_iteration:
            words = f"resuming after iteration {done}" if done > phase.iterations_before else "starting"
            left = phase.last_iteration - max(done, phase.iterations_before)
            print(f"{title}: {words}, {left} iterations", flush=True)
            entry.status = "running"
            self._write()
            before, hung = files, False
            self._kept = time.monotonic()
            self._last_line, self._last_iteration = -math.inf, done
            (run / PROGRESS_FILE).unlink(missing_ok=True)  # of an earlier start
            try:
                run_umc(
                    "train",
                    self.arguments(number, files[-1] if files else None),
                    log=self.folder / f"phase{number + 1}.log",
                    on_poll=lambda: self._on_poll(number, title),
                )
            except (ChildFailed, KeyboardInterrupt) as failure:
                hangs = hangs + 1 if checkpoints_in(run) == before else 0
                hung = isinstance(failure, ChildFailed) and failure.code == HUNG
                if not hung or hangs == MAX_HANGS:
                    print(f"resume with: {self.command}", flush=True)
                    raise
            finally:
                self._keep_time(number)
            files = checkpoints_in(run)
            if not hung and (not files or iterations_of(files[-1]) < phase.last_iteration):
                raise UmcError(f"{phase.title} ended without its last checkpoint; look at its messages above")
        entry.status, entry.checkpoint, entry.ended_at = "done", str(files[-1]), now()
        self._write()

    def _keep_time(self, number: int) -> None:
        """Add up how long a phase has taken, and write it, so that a killed process has counted, too."""
        seconds = time.monotonic() - self._kept
        self._kept += seconds
        self.state.phases[number].seconds += seconds
        self._write()

    def _on_poll(self, number: int, title: str) -> None:
        """Keep the time; print the progress of phase and recipe every minute and at the end of the phase."""
        if time.monotonic() - self._kept >= KEEP_EVERY_S:
            self._keep_time(number)
        run = Path(self.state.phases[number].run_dir)
        progress = read_progress(run)
        if progress is None or progress["iteration"] <= self._last_iteration:
            return
        iteration, total, rate = progress["iteration"], progress["iterations"], progress["env_steps_per_s"]
        if time.monotonic() - self._last_line < LINE_EVERY_S and iteration < total:
            return
        self._last_line, self._last_iteration = time.monotonic(), iteration
        overall = self.overall(number, iteration, rate, read_record(run))
        print(f"{title}: iteration {iteration}/{total}: {rate:,.0f} env-steps/s; {overall}", flush=True)

    def overall(self, number: int, iteration: int, rate: float, record: dict[str, Any]) -> str:
        """Return the recipe's progress; later phases are assumed to run at ``rate`` [env steps/s] of this one."""
        phases = self.recipe.phases
        work = [phase.iterations * (phase.num_envs or record["num_envs"]) for phase in phases]
        phase = phases[number]
        share = min(max(iteration - phase.iterations_before, 0), phase.iterations) / phase.iterations
        done = sum(work[:number]) + share * work[number]
        left = (sum(work) - done) * record["num_steps_per_env"] / rate
        return f"whole recipe {done / sum(work):.0%}, ETA {duration(left)}"

    def arguments(self, number: int, resumed: Path | None) -> list[str]:
        """Return the arguments of ``train.py`` for a phase whose run has the checkpoint ``resumed``, if any."""
        phase = self.recipe.phases[number]
        resumes = resumed is not None or phase.resumes
        flags = as_flags(
            task=phase.task,
            agent=entry_point(phase.agent, self.recipe.library),
            logs=self.logs,
            max_iterations=phase.last_iteration,
            seed=phase.seed,
            num_envs=phase.num_envs,
            device=self.recipe.device,
            resume=resumes,
            run_dir=None if resumes else self._run_dir(number),
            checkpoint=resumed or self._start(number),
            teacher=self._teacher(phase),
            trust=self.trust and phase.teacher is not None,
        )
        return [*flags, *phase.overrides]

    def _run_dir(self, number: int) -> Path:
        """Return the run folder of a phase: recorded before, that of the run it resumes, or a new one."""
        entries, phase = self.state.phases, self.recipe.phases[number]
        if number < len(entries):
            return Path(entries[number].run_dir)
        if phase.resumes:
            return self._run_dir(number - 1)
        experiment = experiment_name(self.recipe.robot, phase.agent, phase.stage)
        place = experiment_folder(self.logs, experiment, self.recipe.library)
        name = f"{run_stamp()}_{self.recipe.name}_seed{self.recipe.seed}_phase{number + 1}"
        folder, attempt = place / name, 2
        while folder.exists():
            folder, attempt = place / f"{name}_{attempt}", attempt + 1
        return folder

    def _start(self, number: int) -> Path | str | None:
        """Return the checkpoint that a phase starts from, as --checkpoint takes it."""
        phase = self.recipe.phases[number]
        if phase.source is not None:
            return self._from_source(phase, phase.source)
        if number == 0:
            return None
        # before it has run there is only a placeholder for it
        return self._checkpoint(number - 1) if self._done(number - 1) else f"<phase {number}>"

    def _from_source(self, phase: Phase, source: Source) -> Path | str:
        if source.recipe is not None:
            path = self._from_recipe(source.recipe, source.stage)
        elif is_pretrained(source.path):
            agent = AGENTS[phase.agent].stage1 or phase.agent
            if source.fold and agent.startswith(BASELINE_PREFIX):
                agent = agent.removeprefix(BASELINE_PREFIX)
            elif source.fold:
                agent = BASELINE_PREFIX + agent
            path, _ = find_pretrained(str(source.path), self.recipe.robot, agent, source.stage)
        else:
            path = checked_checkpoint(str(source.path))
        if source.fold and self.shows:
            return f"<{str(path).strip('<>')}, folded>"
        return self._folded(phase, Path(path)) if source.fold else path

    def _teacher(self, phase: Phase) -> Path | str | None:
        """Return the policy that a phase imitates, as --teacher takes it."""
        if isinstance(phase.teacher, Teacher):
            return self._from_recipe(str(phase.teacher.recipe), phase.teacher.stage)
        return phase.teacher

    def _from_recipe(self, name: str, stage: int) -> Path | str:
        recipe = read_recipe(name, self.recipe.seed)
        command = ["--recipe", name, *as_flags(logs=self.logs, seed=self.recipe.seed)]
        numbers = [number for number, one in enumerate(recipe.phases) if one.stage == stage]
        if not numbers:
            raise UmcError(f"recipe {recipe.name} has no Stage {stage}; give another stage")
        try:
            other = RecipeRun(recipe, self.logs, "")
            if not self.shows:
                other._check_done(numbers[-1] + 1)
        except UmcError as error:
            again = command_line("train", [*command, "--restart"])
            raise UmcError(f"this phase needs Stage {stage} of another recipe ({again}): {error}") from error
        if not all(other._done(number) for number in numbers):
            if self.shows:
                return f"<Stage {stage} of recipe {other.recipe.name}>"
            raise UmcError(
                f"this phase needs Stage {stage} of recipe {other.recipe.name}, which is not done under "
                f"{self.logs}; run it first: {command_line('train', command)}"
            )
        return other._checkpoint(numbers[-1])

    def _folded(self, phase: Phase, path: Path) -> Path:
        from umc.rl.transfer import add_neutral_flag, fold_flag_into_bias  # import torch

        out = self.folder / f"folded_{sha256(path)[:12]}.pt"
        if not out.is_file():
            convert = fold_flag_into_bias if phase.agent.startswith(BASELINE_PREFIX) else add_neutral_flag
            write_checkpoint(out, convert(read_checkpoint(path), path))
        return out

    def _done(self, number: int) -> bool:
        entries = self.state.phases
        return number < len(entries) and entries[number].status == "done"

    def _checkpoint(self, number: int) -> Path:
        """Return the last checkpoint of a phase that is done."""
        return Path(str(self.state.phases[number].checkpoint))

    def _entry(self, number: int) -> PhaseState:
        """Return the state of a phase, which is recorded before its first start."""
        entries, mark = self.state.phases, self.recipe.fingerprint(number + 1)
        if number == len(entries):
            run_dir, title = str(self._run_dir(number)), self.recipe.phases[number].title
            new = {"title": title, "status": "waiting", "run_dir": run_dir, "fingerprint": mark, "started_at": now()}
            entries.append(validated(PhaseState, new, "the phase"))
        entries[number].fingerprint = mark
        return entries[number]

    def _check_done(self, count: int | None = None) -> None:
        """Refuse changes of the first ``count`` phases, if trained; forget a changed one that has not been."""
        for number, entry in enumerate(self.state.phases[:count]):
            phase = self.recipe.phases[number] if number < len(self.recipe.phases) else None
            if phase is None or entry.fingerprint != self.recipe.fingerprint(number + 1):
                files = checkpoints_in(Path(entry.run_dir))
                # a phase that resumes has the checkpoints of the one before it in its run folder
                resumes = number > 0 and self.state.phases[number - 1].run_dir == entry.run_dir
                before = iterations_of(self._checkpoint(number - 1)) if resumes else 0
                if entry.status != "done" and (not files or iterations_of(files[-1]) <= before):
                    del self.state.phases[number:]
                    return
                raise UmcError(
                    f"recipe {self.recipe.name} has changed since its phase {number + 1} ({entry.title}) was "
                    "trained; undo the change, start over with --restart, or save the changed recipe under another name"
                )
            if entry.status == "done" and not self._checkpoint(number).is_file():
                raise UmcError(f"{entry.checkpoint} is gone; start over with --restart")

    def _check_starts(self) -> None:
        """Refuse checkpoints and teachers that do not fit, before the phases before them are trained."""
        teachers: dict[str, Any] = {}
        for number, phase in enumerate(self.recipe.phases):
            if self._done(number):
                continue
            try:
                if phase.source is not None and not checkpoints_in(self._run_dir(number)):
                    start = self._from_source(phase, phase.source)
                    info = checkpoint_info(read_checkpoint(Path(start)), start)
                    require_match(info, start, self.recipe.robot, AGENTS[phase.agent].network)
                    if info.stage > phase.stage:
                        raise UmcError(f"{start} is of Stage {info.stage}; give weights of Stage {phase.stage}")
                teacher = self._teacher(phase)
                if teacher is not None:
                    from umc.rl.distillation import read_teacher  # takes seconds
                    from umc.training.plan import require_same_interface, require_stage

                    teacher = str(teacher)
                    if teacher not in teachers:
                        teachers[teacher] = read_teacher(teacher, self.recipe.robot, self.trust)
                    require_stage(teachers[teacher], phase.task)
                    tokens = AGENTS[phase.agent].tokens(phase.stage)
                    require_same_interface(teachers[teacher], merged_overrides(tokens, phase.overrides))
            except UmcError as error:
                raise UmcError(f"{phase.title}: {error}") from error
        self.trust = True  # each file was asked for

    def _write(self) -> None:
        write_json(self.folder / STATE, self.state.model_dump(exclude_none=True))

    @property
    def checkpoint(self) -> Path:
        """Last checkpoint of the last phase."""
        return self._checkpoint(-1)

    def summary(self) -> None:
        """Print what was trained, and how it can be published."""
        print(f"recipe {self.recipe.name} is done:")
        for phase, entry in zip(self.recipe.phases, self.state.phases, strict=True):
            print(f"  {phase.title}: {phase.iterations} iterations, {duration(entry.seconds)}, {entry.checkpoint}")
        print(f"  in all: {duration(sum(entry.seconds for entry in self.state.phases))}")
        print(f"checkpoint: {self.checkpoint}")
        publish = ["python", "-m", "tools.publish_policy", str(self.checkpoint), "--recipe", self.recipe.name]
        print(f"publish it with: {shlex.join(publish)} --metrics <report.json>")

    def evaluation(self) -> list[str]:
        """Return the arguments of ``evaluate.py`` for the policy, on the engine that it was trained on."""
        wanted = self.recipe.evaluation
        flags = as_flags(checkpoint=self.checkpoint, num_envs=wanted.num_envs, device=self.recipe.device)
        return [*flags, *self.recipe.engine, *wanted.overrides]
