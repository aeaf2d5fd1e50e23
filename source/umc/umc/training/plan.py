# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Decide and check what a training run does before the simulation starts."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umc.rl.agents import STAGE_ITERATIONS, AgentSpec, agent_spec
from umc.rl.checkpoint import (
    TERRAIN_KEY,
    CheckpointInfo,
    checkpoint_info,
    checkpoints_in,
    newest_checkpoint,
    read_checkpoint,
    require_iterations_left,
    require_match,
    require_resumable,
    trained_terrain,
)
from umc.rl.critics import MLP_CRITIC_KEY, needs_mlp_critic
from umc.rl.pretrained import describe, pretrained_folder, read_models
from umc.rl.transfer import find_stage1
from umc.training.arguments import TrainRequest
from umc.training.task_cfg import (
    check_groups,
    check_launch,
    check_sizes,
    physics_name,
    pick_device,
    resolve_cfgs,
)
from umc.utils.config import merged_overrides, override_key
from umc.utils.distributed import ranks_from_env
from umc.utils.errors import UmcError
from umc.utils.naming import experiment_folder, library_of
from umc.utils.provenance import FINISHED, RUN_FILE, RunRecord, new_record, parent, read_record

STAGE2_KEYS = ("env.events.faults", "env.events.reset_faults", "agent.experiment_name")
"""Overrides that do not hold for a Stage 1 trained first: it has no faults, and its own folder."""

REMEMBERED = ("num_envs", "max_iterations")
"""Fields of ``run.json`` that ``--resume`` needs beside those that every record has."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How big a run is."""

    num_envs: int
    """Envs simulated at once."""
    max_iterations: int
    """Learning iterations."""


CPU_SIZES = {
    "mlp": Sizes(num_envs=256, max_iterations=1000),
    "transformer_small32": Sizes(num_envs=256, max_iterations=1000),
    "transformer_small64": Sizes(num_envs=256, max_iterations=1000),
}
"""Sizes of one stage for one to two CPU cores, by network. MLP: 256 envs learned more per minute than 512, and A1
walked after 700 iterations (37 min, ovphysx, measured on two shared cores). Of the small transformers, which learn from
about 3,500 and 2,000 samples/s, an iteration of as many envs learns for 9 s and 15 s."""

CPU_SIZES_LARGE_MODEL = Sizes(num_envs=256, max_iterations=300)
"""The same for every other model. The transformer and its critic learn from about 1,900 samples/s on two threads
(``benchmarks/learning.py``): 256 envs x 24 steps x 5 epochs are 16 s an iteration; A1 walked after 282."""

QUICK_SIZES = Sizes(num_envs=16, max_iterations=3)
"""Of ``--quick``, for each stage: enough to pass through every part, far too little to learn."""

SMALL_MACHINE_CORES = 4
"""Up to this many cores one thread of torch was faster than more (measured with 2)."""


@dataclasses.dataclass
class Plan:
    """Everything about a run that is known before its simulation."""

    request: TrainRequest
    """The command line."""
    env_cfg: Any
    """Env cfg, resolved."""
    agent_cfg: Any
    """Agent cfg, resolved."""
    device: str
    """Device of physics and learning."""
    physics: str
    """Name of the engine preset."""
    start_from: Path | None
    """Checkpoint whose weights the run loads, or that it resumes; None starts from nothing."""
    record: RunRecord
    """The run's ``run.json``; not written yet."""
    remarks: list[str]
    """Lines for the user."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.record.path.parent

    @property
    def resume(self) -> bool:
        """Whether the run resumes in its folder."""
        return self.request.options.resume

    @property
    def iterations_done(self) -> int:
        """Iterations of a resumed run so far."""
        if not self.resume or self.start_from is None:
            return 0
        return checkpoint_info(read_checkpoint(self.start_from), self.start_from).iteration + 1


def needs_stage1(request: TrainRequest) -> bool:
    """Return whether Stage 1 has to be trained before this run can start."""
    if request.checkpoint is not None or request.options.resume:
        return False
    agent = stage1_agent(request)
    return (
        agent is not None
        and find_stage1(request.logs, request.robot, agent, request.library, not request.options.no_pretrained) is None
    )


def stage1_agent(request: TrainRequest) -> str | None:
    """Return the agent whose Stage 1 weights this run loads; None if it starts from nothing."""
    return request.spec.stage1 if request.stage == 2 else None


def stage1_overrides(overrides: list[str]) -> list[str]:
    """Return the overrides that also hold for a Stage 1 trained first."""
    return [token for token in overrides if not override_key(token).startswith(STAGE2_KEYS)]


def common_flags(request: TrainRequest, agent: str) -> list[str]:
    """Return the flags that a child process which trains ``agent`` takes over."""
    options = request.options
    flags = ["--agent", agent, "--logs", str(options.logs)]
    for name in ("num_envs", "seed", "max_iterations", "device", "run_name"):
        value = getattr(options, name)
        if value not in (None, ""):
            flags += [f"--{name}", str(value)]
    return flags + [f"--{name}" for name in ("deterministic", "distributed") if getattr(options, name)]


def make_plan(request: TrainRequest) -> Plan:
    """Decide everything about a run; raise UmcError if something is wrong with it."""
    ranks = ranks_from_env()
    if request.library == "skrl" and ranks.several:
        raise UmcError("skrl learns in one process here; start it without torchrun, or give --rl_library rsl_rl")
    device = pick_device(request.options.device)
    # Isaac Lab takes the flag for a GPU of its own
    request.options.distributed = ranks.several and device != "cpu"
    if request.checkpoint is not None:
        checked_info(request, request.checkpoint)
    typed = request.overrides
    request.overrides = merged_overrides(request.spec.tokens(request.stage), typed)
    env_cfg, agent_cfg = resolve_cfgs(request.task, request.agent, request.overrides)
    remarks: list[str] = [request.engine] if request.engine else []
    if request.options.resume:
        start_from, record = _resumed(request, agent_cfg)
        request.overrides = merged_overrides(record.fields["overrides"], typed)
        env_cfg, agent_cfg = resolve_cfgs(request.task, request.agent, request.overrides)
        seed = record.fields["seed"] if request.options.seed is None else request.options.seed
        remembered = Sizes(record.fields["num_envs"], record.fields["max_iterations"])
        apply_sizes(request, env_cfg, agent_cfg, remembered, typed)
        remarks.append(f"resuming {start_from}")
        if record.fields.get("device", device) != device:
            remarks.append(f"it ran on {record.fields['device']} so far (--device)")
    else:
        start_from, record = _start(request), None
        seed = agent_cfg.seed if request.options.seed is None else request.options.seed
        remarks += _cpu_sizes(request, env_cfg, agent_cfg) if device == "cpu" else []
        apply_sizes(request, env_cfg, agent_cfg, None, typed)
        remarks += _about_start(start_from, env_cfg) if start_from else ["starting from nothing"]
        remarks += _adopt_critic(request, start_from, agent_cfg) if start_from else []
    agent_cfg.run_name = request.options.run_name or agent_cfg.run_name
    agent_cfg.seed = seed
    env_cfg.seed = ranks.seed(seed)  # before the env exists: it draws while it is built
    env_cfg.sim.device = agent_cfg.device = request.options.device = device
    check_sizes(env_cfg, agent_cfg)
    check_groups(env_cfg, agent_cfg)
    check_launch(env_cfg, request.options)
    stages = []
    if request.spec.curriculum:
        from umc.training.curriculum import add_curriculum, curriculum_stages

        over = getattr(agent_cfg, "curriculum_iterations", 0) or agent_cfg.max_iterations  # skrl has no such field
        stages = curriculum_stages(request.spec, over, agent_cfg.num_steps_per_env)
        add_curriculum(env_cfg, stages)
    facts = {
        "robot": request.robot,
        "stage": request.stage,
        "model": request.model,
        "agent_overrides": request.spec.tokens(request.stage),
        "fault_curriculum": stages,
        "physics": physics_name(env_cfg),
        "device": device,
        "seed": seed,
        "num_envs": env_cfg.scene.num_envs,
        "world_size": ranks.world_size,
        "num_steps_per_env": agent_cfg.num_steps_per_env,
        "max_iterations": agent_cfg.max_iterations,
        "overrides": request.overrides,
    }
    if record is None:
        facts["parent"] = None if start_from is None else parent(start_from)
        record = new_record(_new_folder(request, agent_cfg), request.task, request.agent, **facts)
    else:
        record.held = True  # until the checkpoint has turned out to fit
        record.fields |= facts
    env_cfg.log_dir = str(record.path.parent)
    plan = Plan(request, env_cfg, agent_cfg, device, facts["physics"], start_from, record, remarks)
    if plan.resume:
        require_iterations_left(plan.iterations_done, agent_cfg.max_iterations)
    return plan


def broadcast_plan(plan: Plan) -> None:
    """Give the plans of all ranks rank 0's run folder and checkpoint; raise UmcError if a rank does not see it."""
    if not ranks_from_env().several:
        return
    from umc.utils.distributed import broadcast_object, check_gpus, run_on_all_ranks

    check_gpus(plan.device)
    folder, start = broadcast_object((str(plan.folder), None if plan.start_from is None else str(plan.start_from)))
    plan.record.path = Path(folder) / plan.record.path.name
    plan.record.writes = ranks_from_env().first
    plan.env_cfg.log_dir = folder
    plan.start_from = None if start is None else Path(start)

    def see() -> None:
        if plan.start_from is not None and not plan.start_from.is_file():
            raise UmcError(f"no checkpoint at {plan.start_from}; all machines need --logs on a disk that they share")

    run_on_all_ranks(see)


def claim_folder(plan: Plan) -> None:
    """Create the folder of a new run on rank 0; raise UmcError if another run has it.

    A ``--run_dir`` may exist if it holds no checkpoint: its run was killed before the first one.
    """
    if plan.resume or not plan.record.writes:
        return
    given = plan.request.options.run_dir is not None
    try:
        plan.folder.mkdir(parents=True, exist_ok=given and not checkpoints_in(plan.folder))
    except FileExistsError as error:
        fix = "give another --run_dir, or --resume" if given else "start again in a second, or give another --run_name"
        raise UmcError(f"{plan.folder} exists already; {fix}") from error


def checked_info(request: TrainRequest, path: Path) -> CheckpointInfo:
    """Return the metadata of a checkpoint; raise UmcError if this run cannot use it."""
    data = read_checkpoint(path)
    info = checkpoint_info(data, path)
    if request.options.resume:
        require_same_run(request, info, path)
    require_match(info, path, request.robot, request.model)
    if request.options.resume:
        require_resumable(data, path)
    if info.stage > request.stage:
        raise UmcError(
            f"{path} is of Stage {info.stage}; Stage {request.stage} comes before it: give --task {info.task}"
        )
    return info


def apply_sizes(
    request: TrainRequest, env_cfg: Any, agent_cfg: Any, remembered: Sizes | None, typed: list[str]
) -> None:
    """Write the sizes into the cfgs: flags win, then overrides of this command, then what a resumed run remembers."""
    options, keys = request.options, {override_key(token) for token in typed}
    if options.num_envs is not None:
        env_cfg.scene.num_envs = options.num_envs
    elif remembered is not None and "env.scene.num_envs" not in keys:
        env_cfg.scene.num_envs = remembered.num_envs
    if options.max_iterations is not None:
        agent_cfg.max_iterations = options.max_iterations
    elif remembered is not None and "agent.max_iterations" not in keys:
        agent_cfg.max_iterations = remembered.max_iterations


def _cpu_sizes(request: TrainRequest, env_cfg: Any, agent_cfg: Any) -> list[str]:
    """Write the sizes for a CPU into the cfgs where the user gave none; return a remark about them."""
    options, keys = request.options, {override_key(token) for token in request.overrides}
    sizes, chosen = cpu_sizes(request.spec), []
    if options.num_envs is None and "env.scene.num_envs" not in keys:
        chosen.append(f"{sizes.num_envs} envs (the task's own: {env_cfg.scene.num_envs}; --num_envs)")
        env_cfg.scene.num_envs = sizes.num_envs
    if options.max_iterations is None and "agent.max_iterations" not in keys:
        chosen.append(
            f"{sizes.max_iterations} iterations (the task's own: {agent_cfg.max_iterations}; --max_iterations)"
        )
        agent_cfg.max_iterations = sizes.max_iterations
    return [f"chosen for a CPU: {', '.join(chosen)}"] if chosen else []


def _start(request: TrainRequest) -> Path | None:
    agent = stage1_agent(request)
    if request.checkpoint is not None or agent is None:
        return request.checkpoint
    pretrained = not request.options.no_pretrained
    path = find_stage1(request.logs, request.robot, agent, request.library, pretrained)
    if path is None:
        raise UmcError(f"no Stage 1 checkpoint of {request.robot} and {agent}; train Stage 1 or give --checkpoint")
    info = checkpoint_info(read_checkpoint(path), path)
    require_match(info, path, request.robot, request.model)
    return path


def _about_start(path: Path, env_cfg: Any) -> list[str]:
    """Return remarks about the checkpoint that a run starts from."""
    from umc.terrains import ground_name

    lines = [f"starting from {path}"]
    if path.resolve().parent == pretrained_folder().resolve():
        lines.append(f"{describe(path.stem, read_models()[path.stem])}; --no_pretrained trains Stage 1 first instead")
    info = checkpoint_info(read_checkpoint(path), path)
    if (path.parent / RUN_FILE).is_file():
        status = read_record(path.parent).get("status", FINISHED)
        if status != FINISHED:
            lines.append(
                f"its training is not finished ({status} after iteration {info.iteration + 1}); to finish it first: "
                f"--task {info.task} --resume --checkpoint {path}"
            )
    trained, here = trained_terrain(path, info), ground_name(env_cfg.scene.terrain)
    if trained and trained != here:
        lines.append(f"it was trained on {trained} ground, this run walks on {here} ground ({TERRAIN_KEY}={trained})")
    return lines


def _adopt_critic(request: TrainRequest, path: Path, agent_cfg: Any) -> list[str]:
    """Use an MLP critic if the checkpoint has one and the user did not choose; return a remark about it."""
    given = any(override_key(token) == MLP_CRITIC_KEY for token in request.overrides)
    if given or not needs_mlp_critic(read_checkpoint(path).get("critic_state_dict", ()), agent_cfg):
        return []
    agent_cfg.mlp_critic = True
    request.overrides = [*request.overrides, f"{MLP_CRITIC_KEY}=true"]  # kept, so that --resume has it
    return [f"the checkpoint's critic is an MLP, so this run's is one ({MLP_CRITIC_KEY}=true)"]


def _resumed(request: TrainRequest, agent_cfg: Any) -> tuple[Path, RunRecord]:
    path = request.checkpoint
    if path is None:
        experiment = experiment_folder(request.logs, agent_cfg.experiment_name, request.library)
        path = newest_checkpoint(experiment)
        if path is None:
            raise UmcError(f"nothing to resume in {experiment}; start without --resume, or give --checkpoint or --logs")
        checked_info(request, path)
    record = RunRecord(path.parent, read_record(path.parent))
    require_remembered(record.fields, record.path)
    return path, record


def _new_folder(request: TrainRequest, agent_cfg: Any) -> Path:
    if request.options.run_dir is not None:
        return request.options.run_dir
    name = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    if agent_cfg.run_name:
        name += f"_{agent_cfg.run_name}"
    return experiment_folder(request.logs, agent_cfg.experiment_name, request.library) / name


def require_same_run(request: TrainRequest, info: CheckpointInfo, path: Path) -> None:
    """Raise UmcError if a checkpoint is of a run of another task, RL library or agent, for ``--resume``."""
    if info.task != request.task:
        raise UmcError(f"{path} is a run of {info.task}; --resume needs the same task: give --task {info.task}")
    library = library_of(info.agent)
    if library != request.library:
        raise UmcError(f"{path} is a run of {library}; --resume needs the same library: give --rl_library {library}")
    # by their name: networks of several agents are alike, and what tells them apart would change half way
    spec = agent_spec(info.agent)
    if spec is not None and spec.name != request.spec.name:
        raise UmcError(f"{path} is a run of agent {spec.name}; --resume needs the same agent: give --agent {spec.name}")


def require_remembered(fields: Mapping[str, Any], path: Path) -> None:
    """Raise UmcError if a ``run.json`` lacks the sizes of its run."""
    missing = [name for name in REMEMBERED if fields.get(name) is None]
    if missing:
        raise UmcError(f"{path} does not say {' and '.join(missing)}; start a new run without --resume")


def cpu_sizes(spec: AgentSpec) -> Sizes:
    """Return the sizes for a CPU; an agent that has the iterations of both stages in one gets twice as many."""
    sizes = CPU_SIZES_LARGE_MODEL if is_large(spec) else CPU_SIZES[spec.network.removeprefix("nm_")]
    return dataclasses.replace(sizes, max_iterations=sizes.max_iterations * spec.iterations // STAGE_ITERATIONS)


def is_large(spec: AgentSpec) -> bool:
    """Return whether an agent's network is large enough for several threads."""
    return spec.network.removeprefix("nm_") not in CPU_SIZES


def cpu_threads(large_model: bool = False) -> int | None:
    """Return the threads that torch should use on a CPU; None to leave its own choice (or ``OMP_NUM_THREADS``) alone.

    The transformer learns 1.6 times as fast on two threads as on one (``benchmarks/models.py``).
    """
    if large_model or "OMP_NUM_THREADS" in os.environ:
        return None
    return 1 if (os.cpu_count() or 1) <= SMALL_MACHINE_CORES else None
