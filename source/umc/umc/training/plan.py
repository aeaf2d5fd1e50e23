# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Decide and check what a training run does before the simulation starts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.mdp.fault_terms import FAULTS_TERM
from umc.rl.agents import BASELINE_PREFIX, STAGE_ITERATIONS, AgentSpec, agent_spec
from umc.rl.checkpoint import (
    CHECKPOINT_NAME,
    CRITIC_NETWORK,
    NETWORK,
    NOISE,
    TERRAIN_KEY,
    CheckpointInfo,
    checkpoint_info,
    checkpoints_in,
    interface_differences,
    iterations_of,
    network_differences,
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
from umc.tasks.limits import check_faults, check_values
from umc.tasks.memory import check_memory, check_networks
from umc.tasks.task_cfg import (
    check_groups,
    check_launch,
    check_mirror,
    default_engine,
    names_engine,
    physics_name,
    pick_device,
    resolve_cfgs,
)
from umc.training.arguments import TrainRequest, add_arguments
from umc.training.curriculum import add_curriculum
from umc.utils.code_names import require_trusted_code
from umc.utils.config import merged_overrides, override_key
from umc.utils.distributed import broadcast_object, check_gpus, ranks_from_env, run_on_all_ranks
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.isaaclab_flags import parse_all
from umc.utils.naming import experiment_folder, library_of, run_stamp, stage1_task, task_parts
from umc.utils.outputs import require_folder_name, require_writable
from umc.utils.process import lock_folder
from umc.utils.provenance import FINISHED, RUN_FILE, RunRecord, new_record, read_record
from umc.utils.threads import LARGE, SMALL, Threads, torch_threads

if TYPE_CHECKING:
    from umc.rl.distillation import Teacher

REMEMBERED = ("num_envs", "max_iterations")
"""Fields of ``run.json`` that ``--resume`` needs beside those that every record has."""

CPU_NUM_ENVS = 256
"""Envs on one to two CPU cores: the MLP learned more per minute from 256 than from 512."""

CPU_ITERATIONS = 1000
"""Iterations of one stage there. A1's MLP walked after 700 (37 min, ovphysx, on two shared cores). Of the small
transformers, which learn from about 3,500 and 2,000 samples/s, an iteration learns for 9 s and 15 s."""

CPU_ITERATIONS_LARGE = 300
"""The same for every other network. The transformer and its critic learn from about 1,900 samples/s on two threads
(``benchmarks/learning.py``): 256 envs x 24 steps x 5 epochs are 16 s an iteration; A1 walked after 282."""

MOST_COMPILED = 65_535
"""Samples beyond which the compiled backward of attention stops on a GPU, with PyTorch 2.11 (its issue 180445)."""

SMALL_NETWORKS = ("mlp", "gru", "transformer_small32", "transformer_small64", "mt_ftc")
"""Small networks, and their baselines."""


@dataclasses.dataclass
class Plan:
    """Everything about a run that is known before its simulation."""

    request: TrainRequest
    env_cfg: Any
    agent_cfg: Any
    device: str
    """Of physics and learning."""
    start_from: Path | None
    """Checkpoint whose weights the run loads, or that it resumes; None starts from scratch."""
    record: RunRecord
    remarks: list[str]
    """Lines for the user."""
    changed: frozenset[str] = frozenset()
    """Keys of the overrides that change a resumed run."""

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.record.path.parent

    @property
    def physics(self) -> str:
        """Name of the engine preset."""
        return physics_name(self.env_cfg)

    @property
    def threads(self) -> Threads | None:
        """Threads of torch; None on a GPU."""
        return torch_threads(network_size(self.request.spec)) if self.device == "cpu" else None

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


def add_launcher_options(request: TrainRequest, argv: list[str]) -> None:
    """Complete a request with Isaac Lab's launcher flags, the overrides and, if none is named, the default engine."""
    options, overrides = parse_all(argv, [add_arguments])
    options.seed = request.options.seed  # -1 has been drawn already
    request.options, request.overrides = options, overrides
    if not options.resume and not names_engine(overrides):  # a resumed run keeps its engine
        engine, request.engine = default_engine(pick_device(options.device))
        request.overrides = [f"physics={engine}", *overrides]


def add_teacher(request: TrainRequest) -> None:
    """Complete a request with the policy to imitate, if it names one."""
    text = request.options.teacher
    if text is None:
        return
    from umc.rl.distillation import read_teacher

    request.teacher = read_teacher(text, request.robot, request.options.trust)
    require_stage(request.teacher, request.task)


def require_stage(teacher: Teacher, task: str) -> None:
    """Raise UmcError for a teacher without faults in a task with faults."""
    if teacher.stage < task_parts(task)[1]:
        raise UmcError(
            f"{teacher.text} was trained without faults; imitate it with --task {stage1_task(task)}, and start Stage 2 "
            "with --checkpoint"
        )


def needs_stage1(request: TrainRequest) -> bool:
    """Return whether Stage 1 has to be trained before this run can start."""
    return request.stage1_agent is not None and not request.options.resume and _newest_stage1(request) is None


def _newest_stage1(request: TrainRequest) -> Path | None:
    assert request.stage1_agent is not None
    options = request.options
    return find_stage1(options.logs, request.robot, request.stage1_agent, request.library, not options.no_pretrained)


def stage1_to_resume(request: TrainRequest) -> Path | None:
    """Return the unfinished Stage 1 that ``--resume`` finishes where Stage 2 has not begun; None if there is none."""
    if not request.options.resume or request.stage1_agent is None:
        return None
    if newest_checkpoint(_experiment(request)) is not None:
        return None
    path = _newest_stage1(request)
    return path if path is not None and _status(path) != FINISHED else None


def _experiment(request: TrainRequest) -> Path:
    """Folder of the runs of a request's task and agent."""
    _, agent_cfg = resolve_cfgs(request.task, request.agent, request.all_overrides)
    return experiment_folder(request.options.logs, agent_cfg.experiment_name, request.library)


def _status(path: Path) -> str:
    """Return how the training of a checkpoint ended; those without a record are finished."""
    record = read_record(path.parent) if (path.parent / RUN_FILE).is_file() else {}
    total = record.get("max_iterations")
    if total is not None and CHECKPOINT_NAME.fullmatch(path.name) and iterations_of(path) >= total:
        return FINISHED  # one that died between its last checkpoint and the last change of its record
    return record.get("status", FINISHED)


def make_plan(request: TrainRequest) -> Plan:
    """Decide everything about a run; raise UmcError if something is wrong with it."""
    ranks, options = ranks_from_env(), request.options
    if request.library == "skrl" and ranks.is_distributed:
        raise UmcError("skrl learns in one process here; start it without torchrun, or give --rl_library rsl_rl")
    device = pick_device(options.device)
    # Isaac Lab takes the flag for a GPU of its own
    options.distributed = ranks.is_distributed and device != "cpu"
    if request.checkpoint is not None:
        require_usable(request, request.checkpoint)
    plan = _resumed_run(request, device) if options.resume else _new_run(request, device)
    env_cfg, agent_cfg = plan.env_cfg, plan.agent_cfg
    if request.teacher is not None:
        require_same_interface(request.teacher, request.overrides)
        request.teacher.add_observations(env_cfg)
        plan.record.fields["teacher"] = {"name": request.teacher.text, "sha256": request.teacher.sha256}
        plan.remarks.append(f"imitating {request.teacher.text}, of Stage {request.teacher.stage}")
    if options.seed is not None:
        agent_cfg.seed = options.seed
    env_cfg.seed = ranks.seed(agent_cfg.seed)  # before the env exists: it draws while it is built
    env_cfg.sim.device = agent_cfg.device = options.device = device
    env_cfg.log_dir = str(plan.folder)
    check_run(request, env_cfg, agent_cfg, device, imitates=request.teacher is not None)
    require_writable(plan.folder, "the run folder")
    typed = any(override_key(token) == "agent.curriculum_iterations" for token in request.overrides)
    stages = [] if typed or not plan.resume else plan.record.fields.get("fault_curriculum", [])
    curriculum = add_curriculum(env_cfg, agent_cfg, request.spec, [(step, tuple(odds)) for step, odds in stages])
    plan.remarks += _about_scenarios(env_cfg, ranks.world_size) + _without_effect(request)
    plan.record.fields |= {
        "robot": request.robot,
        "stage": request.stage,
        "model": request.spec.network,
        "agent_overrides": request.spec.tokens(request.stage),
        "fault_curriculum": curriculum,
        "physics": plan.physics,
        "device": device,
        "seed": agent_cfg.seed,
        "num_envs": env_cfg.scene.num_envs,
        "world_size": ranks.world_size,
        "num_steps_per_env": agent_cfg.num_steps_per_env,
        "max_iterations": agent_cfg.max_iterations,
        "overrides": request.overrides,
    }
    if plan.resume:
        require_iterations_left(plan.iterations_done, agent_cfg.max_iterations)
    return plan


def check_run(request: TrainRequest, env_cfg: Any, agent_cfg: Any, device: str, imitates: bool) -> None:
    """Raise UmcError for a run that cannot work, or not on this machine."""
    check_cfgs(env_cfg, agent_cfg)
    check_launch(env_cfg, request.options)
    large = network_size(request.spec) == LARGE
    samples = 0.0 if imitates else samples_at_once(agent_cfg)
    # with an MLP as critic a large network is one of two
    at_once = samples * (0.5 if agent_cfg.mlp_critic else 1.0)
    check_memory(env_cfg, request.robot, device, agent_cfg.num_steps_per_env, large, at_once)
    size = round(samples * env_cfg.scene.num_envs)
    attends = "transformer" in request.spec.network
    if agent_cfg.torch_compile_mode and device != "cpu" and attends and size > MOST_COMPILED:
        raise UmcError(
            f"a compiled transformer learns from at most {MOST_COMPILED:,} samples at once on a GPU, not {size:,}"
            " (images included); give more agent.algorithm.num_mini_batches, or leave agent.torch_compile_mode out"
        )
    check_networks(agent_cfg, device)
    if agent_cfg.bfloat16:
        from umc.utils.matmul import check_bfloat16

        check_bfloat16(device, agent_cfg.torch_compile_mode)


def check_cfgs(env_cfg: Any, agent_cfg: Any) -> None:
    """Raise UmcError for cfgs with which no training can work."""
    check_values(env_cfg, agent_cfg)
    check_faults(env_cfg)
    check_groups(env_cfg, agent_cfg)


def new_cfgs(request: TrainRequest, device: str) -> tuple[Any, Any, list[str]]:
    """Return env and agent cfg of a run that does not resume, with its sizes, and which of them were chosen for it."""
    env_cfg, agent_cfg = resolve_cfgs(request.task, request.agent, request.all_overrides)
    check_mirror(agent_cfg, request.all_overrides)
    sizes = cpu_sizes(request.spec) if device == "cpu" else {}
    if request.teacher is not None:
        sizes["max_iterations"] = agent_cfg.distillation.iterations
    return env_cfg, agent_cfg, set_sizes(request, env_cfg, agent_cfg, sizes, request.all_overrides)


def _new_run(request: TrainRequest, device: str) -> Plan:
    """Plan a run that starts from scratch or from other weights."""
    env_cfg, agent_cfg, chosen = new_cfgs(request, device)
    request.overrides = request.all_overrides
    start_from = _start(request)
    remarks = [request.engine] if request.engine else []
    if chosen:
        remarks.append(f"chosen{' for a CPU' if device == 'cpu' else ''}: {', '.join(chosen)}")
    if start_from is None:
        remarks.append("training from scratch")
    else:
        remarks += _about_start(start_from, env_cfg, request.overrides, chosen=request.stage1_agent is None)
        remarks += _adopt_critic(request, start_from, agent_cfg)
    remarks += _about_export(request.task, env_cfg)
    agent_cfg.run_name = request.options.run_name or agent_cfg.run_name
    require_folder_name(agent_cfg.run_name, "agent.run_name")
    require_folder_name(agent_cfg.experiment_name, "agent.experiment_name")
    first = None if start_from is None else {"path": str(start_from.resolve()), "sha256": sha256(start_from)}
    record = new_record(_new_folder(request, agent_cfg), request.task, request.agent, parent=first)
    return Plan(request, env_cfg, agent_cfg, device, start_from, record, remarks)


def _about_export(task: str, env_cfg: Any) -> list[str]:
    """Return a remark about a task whose policies cannot be exported."""
    from umc.rl.io_descriptor import why_not_exported
    from umc.rl.models import EXPORT_INPUTS

    reason = why_not_exported(env_cfg, EXPORT_INPUTS)
    if reason is None:
        return []
    # without an order in the cfg the engine has its own
    verb = "will" if isinstance(env_cfg.scene.robot.joint_ordering, list | tuple) else "may"
    return [f"umc export {verb} refuse {task}: {reason}"]


def _resumed_run(request: TrainRequest, device: str) -> Plan:
    """Plan the rest of a run, with the settings that it started with unless this command gives others."""
    typed = request.overrides
    path = request.checkpoint
    if path is None:
        experiment = _experiment(request)
        path = newest_checkpoint(experiment)
        if path is None:
            raise UmcError(f"nothing to resume in {experiment}; start without --resume, or give --checkpoint or --logs")
        require_usable(request, path)
    record = RunRecord(path.parent, read_record(path.parent, "start a new run without --resume"))
    record.held = True  # until the checkpoint has turned out to fit
    _require_same_teacher(request, record)
    missing = [name for name in REMEMBERED if record.fields.get(name) is None]
    if missing:
        raise UmcError(f"{record.path} does not say {' and '.join(missing)}; start a new run without --resume")
    require_trusted_code(record.fields["overrides"], str(record.path))
    request.overrides = merged_overrides(record.fields["overrides"], typed)
    env_cfg, agent_cfg = resolve_cfgs(request.task, request.agent, request.overrides)
    check_mirror(agent_cfg, typed)
    steps = record.fields.get("num_steps_per_env", agent_cfg.num_steps_per_env)
    if agent_cfg.num_steps_per_env != steps:
        raise UmcError(f"a resumed run keeps agent.num_steps_per_env={steps}, in which its curriculum counts")
    if not any(override_key(token) == "agent.seed" for token in typed):
        agent_cfg.seed = record.fields["seed"]
    set_sizes(request, env_cfg, agent_cfg, {name: record.fields[name] for name in REMEMBERED}, typed)
    remarks = [f"resuming {path}", *_continue_ledger(env_cfg)]
    if request.options.run_name or any(override_key(token) == "agent.run_name" for token in typed):
        remarks.append("its folder keeps its name: --run_name has no effect")
    if record.fields.get("device", device) != device:
        remarks.append(f"it ran on {record.fields['device']} so far (--device)")
    if fixed := fixed_keys(typed, record.fields["overrides"]):
        raise UmcError(f"a resumed run keeps its network: leave out {fixed[0]}, or start a new run with --checkpoint")
    # what was changed after this checkpoint is in the record, but not in its optimizer
    before: dict[str, int] = record.fields.get("changed") or {}
    changed = {override_key(token) for token in typed if token not in record.fields["overrides"]}
    changed |= {key for key, iterations in before.items() if iterations >= iterations_of(path)}
    record.fields["changed"] = before | dict.fromkeys(sorted(changed), iterations_of(path))
    return Plan(request, env_cfg, agent_cfg, device, path, record, remarks, frozenset(changed))


def fixed_keys(typed: Iterable[str], before: Collection[str]) -> list[str]:
    """Return the keys of overrides that a run cannot be resumed with, since it has started without them."""
    keys = sorted({override_key(token) for token in typed if token not in before})
    return [key for key in keys if key.startswith((*NETWORK, *CRITIC_NETWORK)) and not key.startswith(NOISE)]


def _continue_ledger(env_cfg: Any) -> list[str]:
    """Let a resumed run log its faults in a further file, as a ledger is never written over; return what to say."""
    term = getattr(env_cfg.events, FAULTS_TERM, None)
    if term is None or not term.params.get("ledger") or not Path(term.params["ledger"]).exists():
        return []
    ledger = Path(term.params["ledger"])
    further = ledger.with_stem(f"{ledger.stem}_{run_stamp()}")
    term.params["ledger"] = str(further)
    return [f"faults from here on are logged in {further}"]


def _about_scenarios(env_cfg: Any, world_size: int) -> list[str]:
    """Return what to say where scenarios that are assigned env by env have no env."""
    term = getattr(env_cfg.events, FAULTS_TERM, None)
    scenarios = None if term is None else term.params.get("scenario")
    envs = env_cfg.scene.num_envs * world_size
    if not isinstance(scenarios, list | tuple) or len(scenarios) <= envs:
        return []
    return [f"{envs} envs have the first {envs} of {len(scenarios)} scenarios; the others do not happen"]


def _without_effect(request: TrainRequest) -> list[str]:
    """Return what to say about options that nothing reads: another phase, stage or run of a sweep may share them."""
    lines = []
    keys = {override_key(token) for token in request.overrides}
    if "agent.curriculum_iterations" in keys and not request.spec.curriculum:
        lines.append(f"agent.curriculum_iterations has no effect: agent {request.spec.name} has no curriculum")
    if request.teacher is None and any(key.startswith("agent.distillation.") for key in keys):
        lines.append("agent.distillation has no effect without --teacher")
    return lines


def broadcast_plan(plan: Plan) -> None:
    """Give the plans of all ranks rank 0's run folder and checkpoint; raise UmcError if a rank does not see it."""
    if not ranks_from_env().is_distributed:
        return
    check_gpus(plan.device)
    folder, start = broadcast_object((str(plan.folder), None if plan.start_from is None else str(plan.start_from)))
    plan.record.path = Path(folder) / plan.record.path.name
    plan.record.writes = ranks_from_env().is_main
    plan.env_cfg.log_dir = folder
    plan.start_from = None if start is None else Path(start)

    def see() -> None:
        if plan.start_from is not None and not plan.start_from.is_file():
            raise UmcError(f"no checkpoint at {plan.start_from}; all machines need --logs on a disk that they share")

    run_on_all_ranks(see)


def create_run_folder(plan: Plan) -> None:
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


def lock_run(plan: Plan, lock: contextlib.ExitStack) -> None:
    """Let rank 0 hold the run folder until ``lock`` is closed; raise UmcError if another process trains in it."""
    if plan.record.writes:
        lock.enter_context(lock_folder(plan.folder, f"trains in {plan.folder}"))


def require_usable(request: TrainRequest, path: Path) -> None:
    """Raise UmcError if a run cannot start from a checkpoint, or resume it."""
    data = read_checkpoint(path)
    info = checkpoint_info(data, path)
    if request.options.resume:
        _require_same_run(request, info, path)
    require_match(info, path, request.robot, request.spec.network)
    if request.options.resume:
        require_resumable(data, path)
    if info.stage > request.stage:
        raise UmcError(
            f"{path} is of Stage {info.stage}; Stage {request.stage} comes before it: give --task {info.task}"
        )


def set_sizes(
    request: TrainRequest,
    env_cfg: Any,
    agent_cfg: Any,
    defaults: Mapping[str, int],
    overrides: Sequence[str],
) -> list[str]:
    """Write num_envs and max_iterations into the cfgs: flags win, then ``overrides``, then ``defaults``.

    Return which defaults were taken, in words.
    """
    keys = {override_key(token) for token in overrides}
    taken = []
    for name, section, cfg in (("num_envs", "env.scene", env_cfg.scene), ("max_iterations", "agent", agent_cfg)):
        flag = getattr(request.options, name)
        if flag is not None:
            setattr(cfg, name, flag)
        elif name in defaults and f"{section}.{name}" not in keys:
            what = name.split("_")[1]
            taken.append(f"{defaults[name]} {what} (the task's own: {getattr(cfg, name)}; --{name})")
            setattr(cfg, name, defaults[name])
    return taken


def _start(request: TrainRequest) -> Path | None:
    if request.stage1_agent is None:
        return request.checkpoint
    path = _newest_stage1(request)
    if path is None:
        raise UmcError(
            f"no Stage 1 checkpoint of {request.robot} and {request.stage1_agent}; train Stage 1 or give --checkpoint"
        )
    info = checkpoint_info(read_checkpoint(path), path)
    require_match(info, path, request.robot, request.spec.network)
    if (status := _status(path)) != FINISHED:
        raise UmcError(
            f"Stage 1 is not finished ({status} after iteration {info.iteration + 1}); to finish it first: "
            f"{_finish(path, info)}; to start from it as it is: --checkpoint {path}"
        )
    return path


def _finish(path: Path, info: CheckpointInfo) -> str:
    return f"--task {info.task} --agent {info.agent} --resume --checkpoint {path}"


def _about_start(path: Path, env_cfg: Any, overrides: Sequence[str], chosen: bool) -> list[str]:
    """Return remarks about the checkpoint that a run starts from; ``chosen`` if the command line names it."""
    from umc.terrains import ground_name

    lines = [f"starting from {path}"]
    if path.resolve().parent == pretrained_folder().resolve():
        instead = "" if chosen else "; --no_pretrained trains Stage 1 first instead"
        lines.append(f"{describe(path.stem, read_models()[path.stem])}{instead}")
    info = checkpoint_info(read_checkpoint(path), path)
    if (status := _status(path)) != FINISHED:
        lines.append(
            f"its training is not finished ({status} after iteration {info.iteration + 1}); to finish it first: "
            f"{_finish(path, info)}"
        )
    trained, here = trained_terrain(path, info), ground_name(env_cfg.scene.terrain)
    if trained and trained != here:
        lines.append(f"it was trained on {trained} ground, this run walks on {here} ground ({TERRAIN_KEY}={trained})")
    if different := interface_differences(path, info, overrides):
        lines.append(f"only one of its training and this run has {' '.join(different)}: its actions may not fit")
    if different := network_differences(path, info, overrides):
        lines.append(f"only one of its training and this run has {' '.join(different)}: its weights may not fit")
    return lines


def _adopt_critic(request: TrainRequest, path: Path, agent_cfg: Any) -> list[str]:
    """Use an MLP critic if the checkpoint has one and the user did not choose; return a remark about it."""
    given = any(override_key(token) == MLP_CRITIC_KEY for token in request.overrides)
    if given or not needs_mlp_critic(read_checkpoint(path).get("critic_state_dict", ()), agent_cfg):
        return []
    agent_cfg.mlp_critic = True
    request.overrides = [*request.overrides, f"{MLP_CRITIC_KEY}=true"]  # kept, so that --resume has it
    return [f"the checkpoint's critic is an MLP, so this run's is one ({MLP_CRITIC_KEY}=true)"]


def _new_folder(request: TrainRequest, agent_cfg: Any) -> Path:
    if request.options.run_dir is not None:
        return request.options.run_dir
    name = run_stamp()
    if agent_cfg.run_name:
        name += f"_{agent_cfg.run_name}"
    return experiment_folder(request.options.logs, agent_cfg.experiment_name, request.library) / name


def _require_same_run(request: TrainRequest, info: CheckpointInfo, path: Path) -> None:
    if info.task != request.task:
        raise UmcError(f"{path} is a run of {info.task}; --resume needs the same task: give --task {info.task}")
    library = library_of(info.agent)
    if library != request.library:
        raise UmcError(f"{path} is a run of {library}; --resume needs the same library: give --rl_library {library}")
    # by their name: networks of several agents are alike, and what tells them apart would change half way
    spec = agent_spec(info.agent)
    if spec is not None and spec.name != request.spec.name:
        raise UmcError(f"{path} is a run of agent {spec.name}; --resume needs the same agent: give --agent {spec.name}")


def require_same_interface(teacher: Teacher, overrides: Sequence[str]) -> None:
    """Raise UmcError if the actions of a teacher that UMC trained mean something else in this run."""
    if not isinstance(teacher.source, Path):
        return
    info = checkpoint_info(read_checkpoint(teacher.source), teacher.source)
    if different := interface_differences(teacher.source, info, overrides):
        raise UmcError(
            f"only one of --teacher {teacher.text} and this run has {' '.join(different)}; give this run the teacher's "
            "overrides"
        )


def _require_same_teacher(request: TrainRequest, record: RunRecord) -> None:
    teacher = record.fields.get("teacher") or {}
    given = None if request.teacher is None else request.teacher.sha256
    if given != teacher.get("sha256"):
        fix = f"give --teacher {teacher['name']}, the same file" if teacher else "leave out --teacher"
        raise UmcError(f"{record.path.parent} {'imitates a policy' if teacher else 'has no teacher'}; {fix}")


def samples_at_once(agent_cfg: Any) -> float:
    """Return how many samples of an env a mini-batch of PPO has, mirror images included."""
    return agent_cfg.num_steps_per_env / agent_cfg.algorithm.num_mini_batches * (2.0 if agent_cfg.mirror else 1.0)


def cpu_sizes(spec: AgentSpec) -> dict[str, int]:
    """Return the sizes for a CPU; an agent that has the iterations of both stages in one gets twice as many."""
    iterations = CPU_ITERATIONS if network_size(spec) == SMALL else CPU_ITERATIONS_LARGE
    return {"num_envs": CPU_NUM_ENVS, "max_iterations": iterations * spec.iterations // STAGE_ITERATIONS}


def network_size(spec: AgentSpec) -> str:
    """Return whether an agent's network is small, or large enough for several threads."""
    return SMALL if spec.network.removeprefix(BASELINE_PREFIX) in SMALL_NETWORKS else LARGE
