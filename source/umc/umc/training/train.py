# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc train``: train one stage, and the one before it if that is missing: parse, plan, build, load, learn, record."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import umc
from umc.rl.checkpoint import set_aside_later
from umc.rl.critics import add_privileged_faults, use_mlp_critic
from umc.rl.transfer import apply_changes, load_stage1_weights
from umc.training.arguments import DESCRIPTION, EXAMPLES, TrainRequest, add_arguments, parse
from umc.utils.cli import as_flags
from umc.utils.config import override_key
from umc.utils.console import quiet, timed
from umc.utils.distributed import (
    broadcast_object,
    catch_lost_ranks,
    check_distributed_flag,
    check_stage1_possible,
    connect,
    disconnect,
    ranks_from_env,
    run_on_all_ranks,
)
from umc.utils.io import remove_leftovers
from umc.utils.isaaclab_flags import TRAINING, add_launcher_flags, asks_for_help, check_flags, show_help
from umc.utils.naming import LIBRARIES, stage1_task
from umc.utils.process import command_line, end_with_parent, python_arguments, run_umc
from umc.utils.provenance import FINISHED

if TYPE_CHECKING:
    from umc.rl.checkpoint import CheckpointInfo
    from umc.rl.runner import TrainingRunner
    from umc.training.plan import Plan
    from umc.training.recipe import Recipe

STARTUP_LOG = "startup.log"
"""What Isaac Lab prints while it builds an env, kept in the run folder."""


STOP_MESSAGE = "stopped; what was not saved yet is lost"
"""Printed after Ctrl-C and SIGTERM."""


def main(argv: list[str], check: Callable[[Recipe, bool], None]) -> int:
    """Run the command ``umc train``, with a further ``check`` of a recipe; return its exit status."""
    end_with_parent()
    if asks_for_help(argv):
        return show_help(
            argv, "train", DESCRIPTION, EXAMPLES, [add_arguments, add_launcher_flags], (*TRAINING, "sweep")
        )
    if any(token.split("=", 1)[0] == "--recipe" for token in argv):
        from umc.training.recipe_runner import run_recipe

        return run_recipe(argv, check)
    if any(token.split("=")[0] == "--sweep" for token in argv):
        from umc.training.sweep import run_sweep

        return run_sweep(argv)
    ranks = ranks_from_env()
    if not ranks.is_distributed and "--distributed" not in argv:
        return train(argv)
    check_distributed_flag("--distributed" in argv, ranks)
    with contextlib.ExitStack() as output:
        if not ranks.is_main:
            nowhere = output.enter_context(open(os.devnull, "w"))
            output.enter_context(contextlib.redirect_stdout(nowhere))
        connect(ranks, shlex.join(argv))
        status = train(argv)
        disconnect()  # not after an error: another process may be gone
        return status


def train(argv: list[str]) -> int:
    """Parse a command line, plan its run and train it; return the exit status."""
    run_on_all_ranks(lambda: check_flags(argv, [add_arguments]))
    request = run_on_all_ranks(lambda: parse(argv))
    request.options.seed = broadcast_object(request.options.seed)  # -1 has been drawn
    with timed("loading packages"), quiet():
        from umc.training.plan import (
            add_launcher_options,
            add_teacher,
            broadcast_plan,
            create_run_folder,
            lock_run,
            make_plan,
            needs_stage1,
            stage1_to_resume,
        )

        run_on_all_ranks(lambda: add_launcher_options(request, argv))
    run_on_all_ranks(lambda: add_teacher(request))
    if request.options.quick:
        from umc.training.quick import run_quick

        return run_quick(request)
    unfinished = broadcast_object(run_on_all_ranks(lambda: stage1_to_resume(request)))
    if unfinished is not None:
        train_stage1(request, unfinished)
        return train([token for token in argv if token != "--resume"])
    if broadcast_object(run_on_all_ranks(lambda: needs_stage1(request))):
        train_stage1(request)
    with timed("checking the task"), quiet():
        plan = run_on_all_ranks(lambda: make_plan(request))
    broadcast_plan(plan)
    run_on_all_ranks(lambda: create_run_folder(plan))
    with contextlib.ExitStack() as lock:
        run_on_all_ranks(lambda: lock_run(plan, lock))
        checkpoint = _run_plan(plan, argv)
    print(f"checkpoint: {checkpoint}", flush=True)
    return 0


def train_stage1(request: TrainRequest, unfinished: Path | None = None) -> None:
    """Train Stage 1, or the rest of an ``unfinished`` one; raise UmcError if Stage 2 could not start after it."""
    from umc.tasks.task_cfg import check_launch, pick_device
    from umc.training.curriculum import add_curriculum
    from umc.training.plan import check_cfgs, new_cfgs

    run_on_all_ranks(lambda: check_stage1_possible(ranks_from_env()))
    with quiet():
        env_cfg, agent_cfg, _ = new_cfgs(request, pick_device(request.options.device))
        check_cfgs(env_cfg, agent_cfg)
        check_launch(env_cfg, request.options)
        add_curriculum(env_cfg, agent_cfg, request.spec)
    if unfinished is None:
        missing = f"no Stage 1 checkpoint of agent {request.stage1_agent} for {request.robot}"
        print(f"{missing}: training {stage1_task(request.task)} first", flush=True)
    else:
        print(f"{unfinished} is not finished: resuming {stage1_task(request.task)} first", flush=True)
    run_umc("train", [*request.stage1_arguments(), *as_flags(resume=unfinished is not None, checkpoint=unfinished)])
    print(f"Stage 1 is done; now {request.task}", flush=True)


def _run_plan(plan: Plan, argv: list[str]) -> Path:
    """Simulate, learn and record how it ended; return the last checkpoint. ``argv`` goes into ``run.json``."""
    from umc.rl.runner import TrainingInterrupted

    print_plan(plan)
    if plan.resume and plan.record.writes:
        remove_leftovers(plan.folder)
    plan.record.start(argv)
    try:
        checkpoint = _simulate(plan)
    except TrainingInterrupted as interrupt:
        plan.record.finish("interrupted", checkpoint=interrupt.checkpoint.name)
        print(f"{interrupt}, saved; resume with: {resume_command(plan, interrupt.checkpoint)}", flush=True)
        raise
    except BaseException as error:
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        plan.record.finish(status, error=f"{type(error).__name__}: {error}")
        raise
    plan.record.finish(FINISHED, checkpoint=checkpoint.name)
    return checkpoint


def print_plan(plan: Plan) -> None:
    """Print what the run is going to do."""
    request, env_cfg, agent_cfg = plan.request, plan.env_cfg, plan.agent_cfg
    agent = f"agent {request.spec.name}" + ("" if request.library == LIBRARIES[0] else f" by {request.library}")
    print(f"UMC {umc.__version__}: {request.task}, {agent}, {plan.physics} on {plan.device}")
    envs, processes = f"{env_cfg.scene.num_envs} envs", ranks_from_env().world_size
    if processes > 1:
        envs = f"{processes} processes x {envs} = {processes * env_cfg.scene.num_envs} envs"
    print(f"{envs} x {agent_cfg.num_steps_per_env} steps, {agent_cfg.max_iterations} iterations, seed {agent_cfg.seed}")
    if plan.threads is not None:
        print(f"threads: {plan.threads.count} ({plan.threads.reason})")
    for remark in plan.remarks:
        print(remark)
    print(f"run folder: {plan.folder} (messages of the simulation: {STARTUP_LOG})", flush=True)


def resume_command(plan: Plan, checkpoint: Path) -> str:
    """Return the command that resumes a run; everything else is in its ``run.json``."""
    request, options = plan.request, plan.request.options
    processes = ranks_from_env().world_size
    clips = ("video", "video_length", "video_interval") if options.video else ()
    arguments = as_flags(
        task=request.task,
        rl_library=None if request.library == LIBRARIES[0] else request.library,
        agent=request.spec.name,
        resume=True,
        checkpoint=checkpoint,
        teacher=options.teacher,
        trust=options.trust,
        deterministic=options.deterministic,
        **{name: getattr(options, name) for name in clips},
        # without it each process takes the GPU of its number
        device=plan.device if processes == 1 or plan.device == "cpu" else None,
    )
    if processes > 1:
        words = [*python_arguments("train"), *arguments, "--distributed"]
        here = int(os.environ.get("LOCAL_WORLD_SIZE", processes))  # of several machines each starts its own
        several = f"--nnodes {processes // here} --rdzv_backend c10d --rdzv_endpoint HOST:29500"
        nodes = several.split() if here < processes else []
        return shlex.join(["torchrun", *nodes, "--nproc_per_node", str(here), *words])
    return command_line("train", arguments)


def _simulate(plan: Plan) -> Path:
    """Start the simulation, build, load and learn in it; return the last checkpoint."""
    import torch
    from isaaclab_rl.entrypoints.common import scoped_torch_backend_flags

    from umc.tasks.simulation import simulation

    if plan.threads is not None:
        torch.set_num_threads(plan.threads.count)
    fast = {"cuda_matmul_allow_tf32": True, "cudnn_allow_tf32": True}  # as Isaac Lab trains
    with (
        scoped_torch_backend_flags(**fast, cudnn_deterministic=False, cudnn_benchmark=True),
        simulation(plan.env_cfg, plan.request.options, plan.device) as (finish_phase, cleanup),
    ):
        with _startup_log(plan):
            runner = _build(plan, cleanup)
            finish_phase("robots and kernels")
            _load(plan, runner)
            finish_phase("policy")
        return _learn(plan, runner)
    raise AssertionError("no context hides an error")


@contextlib.contextmanager
def _startup_log(plan: Plan) -> Iterator[None]:
    """Keep what is printed in the run folder; with ``--verbose`` or ``--info`` it goes to the terminal instead."""
    log, options = io.StringIO(), plan.request.options
    try:
        with contextlib.nullcontext() if options.verbose or options.info else quiet(log):
            yield
    finally:
        if plan.record.writes:
            plan.folder.mkdir(parents=True, exist_ok=True)
            (plan.folder / STARTUP_LOG).write_text(log.getvalue())


def _build(plan: Plan, cleanup: contextlib.ExitStack) -> TrainingRunner:
    """Return the runner of a new env; ``cleanup`` closes the env."""
    import gymnasium as gym
    import torch
    from isaaclab.utils import to_dict
    from isaaclab_rl.entrypoints.common import apply_env_overrides, close_env
    from isaaclab_rl.rsl_rl.utils import check_rsl_rl_version, handle_deprecated_rsl_rl_cfg

    from umc.mdp import fault_state

    request, env_cfg = plan.request, plan.env_cfg
    apply_env_overrides(request.options, env_cfg)
    add_privileged_faults(env_cfg, plan.agent_cfg)
    use_mlp_critic(plan.agent_cfg)
    plan.agent_cfg = agent_cfg = handle_deprecated_rsl_rl_cfg(plan.agent_cfg, check_rsl_rl_version())
    env: Any = gym.make(request.task, cfg=env_cfg)
    cleanup.callback(close_env, env)
    if request.options.video and ranks_from_env().is_main:
        env = _record_clips(plan, env, cleanup)
    if plan.resume:  # before the first reset, whose fault draw depends on the curriculum
        env.unwrapped.common_step_counter = plan.iterations_done * agent_cfg.num_steps_per_env
    wrap, runner_class = _library(request)
    train_cfg = to_dict(agent_cfg)
    wrapped = wrap(env, train_cfg)
    # initial weights must not depend on what the engine drew; ranks get those of rank 0 and action noise of their own
    torch.manual_seed(ranks_from_env().seed(agent_cfg.seed))
    info = _checkpoint_info(plan, env.unwrapped)
    runner = runner_class(wrapped, train_cfg, str(plan.folder), agent_cfg.device, info=info)
    # faults are drawn from (seed, env, episode): a resumed run that counts from 0 would repeat its faults
    runner.env_counters["fault_episode"] = fault_state(env.unwrapped).episode
    return runner


def _record_clips(plan: Plan, env: Any, cleanup: contextlib.ExitStack) -> Any:
    """Return the env with a recorder of the clips of ``--video``; ``cleanup`` waits for their films."""
    from umc.training.video import FOLDER, ClipFilms, ClipRecorder

    options, overrides = plan.request.options, plan.request.overrides
    # on the CPU: the GPU belongs to the training
    words = ["--task", plan.request.task, "--device", "cpu"]
    films = ClipFilms([*words, *(token for token in overrides if override_key(token).startswith(("env.", "presets")))])

    recorder = ClipRecorder(env, plan.folder / FOLDER, options.video_length, options.video_interval, films.add)

    def end(kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            recorder.finish()
            films.finish()
        else:
            films.stop()

    cleanup.push(end)
    return recorder


def _checkpoint_info(plan: Plan, env: Any) -> CheckpointInfo:
    """Return the metadata of a run's checkpoints."""
    from umc.rl.checkpoint import CheckpointInfo, env_overrides, network_overrides
    from umc.terrains import ground_name

    return CheckpointInfo(
        robot=plan.request.robot,
        task=plan.request.task,
        stage=plan.request.stage,
        model=plan.request.spec.network,
        joint_names=list(env.scene["robot"].joint_names),
        seed=plan.agent_cfg.seed,
        iteration=0,
        umc_version=umc.__version__,
        agent=plan.request.agent,
        experiment=plan.agent_cfg.experiment_name,
        agent_overrides=plan.record.fields["agent_overrides"],
        physics=plan.physics,
        terrain=ground_name(plan.env_cfg.scene.terrain),
        env_overrides=env_overrides(plan.request.overrides),
        network_overrides=network_overrides(plan.request.overrides),
    )


def _library(request: TrainRequest) -> tuple[Callable[[Any, dict[str, Any]], Any], Callable[..., TrainingRunner]]:
    """Return what wraps an env for an RL library, given the agent cfg, and the runner."""
    if request.teacher is not None:
        from umc.rl.distillation import DistillationRunner, TeacherEnvWrapper

        teacher = request.teacher
        return lambda env, cfg: TeacherEnvWrapper(env, cfg["clip_actions"], teacher), DistillationRunner
    if request.library == "skrl":
        from umc.rl.skrl.packing import PackedEnv
        from umc.rl.skrl.runner import SkrlRunner

        return lambda env, cfg: PackedEnv(env, cfg["obs_groups"], cfg["clip_actions"]), SkrlRunner
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    from umc.rl.runner import UmcRunner

    return lambda env, cfg: RslRlVecEnvWrapper(env, cfg["clip_actions"]), UmcRunner


def _load(plan: Plan, runner: TrainingRunner) -> None:
    """Load what a run starts from or resumes, then write its cfgs."""
    from isaaclab_rl.entrypoints.common import dump_train_configs

    from umc.mdp.fault_terms import fault_term

    load_start(plan, runner)
    # only now: a run whose checkpoint does not fit stays as it was, and can still be resumed
    plan.record.release()
    if plan.record.writes:
        dump_train_configs(str(plan.folder), plan.env_cfg, plan.agent_cfg)
    if plan.resume:  # the first reset has drawn episode 0, whose faults the run has encountered before
        env: Any = runner.env
        fault_term(env.unwrapped).reset_faults(slice(None))


def load_start(plan: Plan, runner: TrainingRunner) -> None:
    """Load the checkpoint of a resumed run with optimizer and counters, or the Stage 1 weights of a new one."""
    if plan.resume:
        runner.resume(str(plan.start_from))
        apply_changes(runner, plan.changed)
    elif plan.start_from is not None:
        load_stage1_weights(runner, plan.start_from, plan.request.robot, plan.request.spec.network)


def _learn(plan: Plan, runner: TrainingRunner) -> Path:
    """Learn until all iterations are done; return the last checkpoint."""
    from umc.utils.matmul import matmul_backend

    cfg = plan.agent_cfg
    if plan.resume and plan.start_from is not None and plan.record.writes:
        for path in set_aside_later(plan.start_from):
            print(f"this run goes on from {plan.start_from.name}; a later checkpoint is now {path}", flush=True)
    with catch_lost_ranks(), matmul_backend(plan.device, cfg.torch_compile_mode, cfg.bfloat16):
        checkpoint = runner.train(cfg.max_iterations, cfg.init_at_random_ep_len)
    results = {"reward": runner.logger.mean_return(), "episode_steps": runner.logger.mean_length()}
    plan.record.fields["result"] = results
    return checkpoint
