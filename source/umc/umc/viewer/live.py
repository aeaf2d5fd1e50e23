# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``umc play --viz viser`` calls: let a policy walk in real time while a user breaks its joints."""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from umc.evaluation.arguments import num_policies
from umc.evaluation.session import Session, open_session, prepare, without_policy
from umc.rendering.film_cfg import FilmCfg
from umc.utils.errors import UmcError
from umc.utils.outputs import require_writable
from umc.viewer.guard import MessageGuard, check_host, guard_requests, own_names

if TYPE_CHECKING:
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from tensordict import TensorDict

    from umc.evaluation.protocol import Protocol, ScenarioId
    from umc.faults import FaultState
    from umc.rl.policy import Policy
    from umc.viewer.panel import Panel

VIEWER = "viser"
"""Isaac Lab's name of the visualizer."""

HOST, PORT = "localhost", 8080
"""Default address of the page: this machine only, since there is no login."""

LIVE_STEPS = 30_000
"""Longest episode on flat ground [env steps]: 10 min, since a reset ends manual faults."""

STANDING_TASK = "UMC-A1-Stage1"
"""Task without ``--checkpoint`` and ``--task``."""

REFRESH, MAX_LAG = 5, 0.5
"""Env steps between two updates of the controls, ten a second, and lag behind real time that is still caught up [s]."""


def is_live(options: argparse.Namespace) -> bool:
    """Return whether the flags ask for this viewer; UmcError if they contradict each other or viser is missing."""
    if VIEWER not in (options.visualizer or ()):
        for name in ("port", "host", "ledger"):
            if getattr(options, name) is not None:
                raise UmcError(f"--{name} needs --viz {VIEWER}")
        return False
    if importlib.util.find_spec("viser") is None:
        raise UmcError("--viz viser needs the package viser; install it with: pip install 'viser>=1.0.16'")
    if options.port is not None and not 0 < options.port < 65536:
        raise UmcError(f"--port is {options.port}; it has to lie between 1 and 65535")
    if options.host is not None:
        check_host(options.host, options.port or PORT)
    if options.ledger is not None:
        require_writable(options.ledger.parent, "--ledger")
    return True


def play_live(options: argparse.Namespace, overrides: list[str], cfg: FilmCfg) -> int:
    """Serve the page until Ctrl-C or for ``--steps`` env steps, and return 0."""
    from umc.evaluation.checkpoints import detector_remarks
    from umc.evaluation.conditions import on_tracks
    from umc.tasks.registry import task_id
    from umc.utils.console import quiet, timed
    from umc.utils.naming import robot_and_stage

    with timed("reading policy and task"), quiet():
        if num_policies(options):
            session = prepare(options, overrides)
        else:
            own = None if options.robot is None else task_id(options.robot.lower(), 1)
            session = without_policy(options, overrides, options.task or own or STANDING_TASK)
            line = f"no --checkpoint: the robot of {session.task} holds its default pose"
            session.remarks = (f"{line}; --checkpoint pretrained lets one walk", *session.remarks)
    robot = robot_and_stage(session.task)[0]
    if session.checkpoints:
        cfg = cfg.for_stage(session.info.stage, options.scenario, robot)
    endless = options.steps is None
    if endless and not on_tracks(session.env_cfg):
        cfg = replace(cfg, steps=LIVE_STEPS)
    protocol = live_protocol(cfg, robot, options.seed, session.info.joint_names if session.checkpoints else None)
    _configure(session, protocol)
    session.remarks += tuple(detector_remarks(session.checkpoints, session.env_cfg))
    with open_session(session) as (env, policies):
        episodes = Episodes(protocol, env.num_envs, cfg.scenario)
        _play(env, policies[0] if policies else None, episodes, session, endless)
    return 0


def live_protocol(cfg: FilmCfg, robot: str, seed: int | None, joint_names: Sequence[str] | None) -> Protocol:
    """Return a protocol with a cell for each button of the page, and for the scenario at the start."""
    from umc.evaluation.protocol import protocol_for
    from umc.faults import SCENARIOS

    protocol = cfg.protocol(robot, seed, joint_names)
    scenarios = tuple(dict.fromkeys((*SCENARIOS, cfg.scenario)))
    # those of the paper need severities that a protocol of other scenarios may lack
    protocol = replace(protocol, scenarios=scenarios, severity={**protocol_for(robot).severity, **protocol.severity})
    if joint_names is not None:
        protocol.check_faults(joint_names)
    return protocol


def _configure(session: Session, protocol: Protocol) -> None:
    """Prepare a task for the viewer and for manual faults."""
    from umc.evaluation.conditions import add_command_faults, set_protocol
    from umc.mdp import add_imu_sensors
    from umc.mdp.fault_terms import FAULTS_TERM
    from umc.mdp.imu import has_plain_imu_terms
    from umc.viewer.patches import patch_viser_visualizer
    from umc.viewer.scene import visualizer_cfg

    patch_viser_visualizer()
    guard_requests(own_names(session.options.host or HOST))
    cfg, options = session.env_cfg, session.options
    set_protocol(cfg, protocol, options.num_envs or 1)
    if options.ledger is not None:
        getattr(cfg.events, FAULTS_TERM).params["ledger"] = str(options.ledger)
    add_command_faults(cfg)
    if has_plain_imu_terms(cfg):
        add_imu_sensors(cfg)
    cfg.sim.visualizer_cfgs = [visualizer_cfg(options.host or HOST, options.port or PORT)]


@dataclass
class _Actor:
    """Act; do what was clicked before each action, since callbacks of the page run in other threads."""

    policy: Policy | None
    panel: Panel
    num_actions: int
    seen: TensorDict | None = None
    """Observations of the last action."""

    def __call__(self, obs: TensorDict) -> torch.Tensor:
        import torch

        self.panel.do_clicks()
        self.seen = obs
        if self.policy is not None:
            return self.policy(obs)
        return torch.zeros(*obs.batch_size, self.num_actions, device=obs.device)

    def reset(self, envs: torch.Tensor | None) -> None:
        if self.policy is not None:
            self.policy.reset(envs)


class Episodes:
    """Scenarios of the episodes: the same faults again after a reset, others for each button that is pressed."""

    def __init__(self, protocol: Protocol, num_envs: int, scenario: ScenarioId) -> None:
        self.protocol, self.scenario = protocol, scenario
        self._num_envs, self._draw = num_envs, 0

    def start(self, scenario: int) -> None:
        """Draw new faults of a scenario for the next :meth:`reset`."""
        self.scenario = scenario
        self._draw += 1

    def reset(self, env: ManagerBasedRLEnv) -> Any:
        """Reset all envs to the scenario, and return the observations."""
        import torch

        from umc.evaluation.rollout import reset_batch
        from umc.evaluation.study import assignment_of

        scenarios = self.protocol.scenarios
        robots = torch.arange(self._num_envs) + self._num_envs * self._draw
        robots = robots * len(scenarios) + scenarios.index(self.scenario)
        return reset_batch(env, self.protocol, assignment_of(self.protocol, robots))

    def describe(self, state: FaultState, env_id: int, step_dt: float) -> str:
        """Say which joints of an env fail in this episode, and when."""
        from umc.evaluation.breakdown import scenario_name
        from umc.evaluation.study import faulty_joints

        faulty = faulty_joints(state)[env_id].tolist()
        joints = [name.removesuffix("_joint") for name, hit in zip(state.joint_names, faulty, strict=True) if hit]
        title = f"Scenario {self.scenario} ({scenario_name(self.scenario)}): "
        if not bool(state.plan.kinds[env_id].any()):
            return title + "no fault."
        verb = "fail" if len(joints) > 1 else "fails"
        return title + f"{', '.join(joints) or 'the IMU'} {verb} at {float(state.onset[env_id]) * step_dt:.1f} s."


def _play(env: ManagerBasedRLEnv, policy: Policy | None, episodes: Episodes, session: Session, endless: bool) -> None:
    """Step the policy, episode after episode."""
    import torch

    from umc.evaluation.rollout import step_policy
    from umc.mdp import FaultInjector, fault_state
    from umc.viewer.panel import Panel
    from umc.viewer.scene import Scene

    scene = Scene(env)
    injector = FaultInjector(env)
    panel = Panel(scene.server, env, injector, title(session), policy)
    MessageGuard(scene.server)
    actor = _Actor(policy, panel, env.action_manager.total_action_dim)
    print(f"viewer: {scene.url(session.options.host or HOST)} (press Ctrl-C to end)", flush=True)
    done, steps = 0, episodes.protocol.steps
    while endless or done < steps:
        if panel.scenario is not None:
            episodes.start(panel.scenario)
            panel.scenario = None
        obs = episodes.reset(env)
        panel.say(episodes.describe(fault_state(env), panel.env_id, env.step_dt))
        due = time.monotonic()
        for step in step_policy(env, actor, obs, steps if endless else steps - done):
            done += 1
            if panel.follows:
                scene.follow(panel.env_id)
            panel.record()
            if step.number % REFRESH == 0:
                scene.painter.paint()
                with torch.inference_mode():
                    panel.refresh(actor.seen)
            fell = _fallen(env)
            if bool(fell[panel.env_id]):
                panel.say("The robot fell: it was reset, which heals it.")
            # a scenario's button; or the page's Reset Episode, which the env has already done
            if panel.scenario is not None or bool((step.fell & ~fell).any()):
                break
            scene.check()
            due = max(due + env.step_dt, time.monotonic() - MAX_LAG)
            time.sleep(max(due - time.monotonic(), 0.0))


def _fallen(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the envs whose last step ended an episode other than by time-out. Shape is (E,)."""
    import torch

    manager = env.termination_manager
    falls = [manager.get_term(name) for name in manager.active_terms if not manager.get_term_cfg(name).time_out]
    return torch.stack(falls).any(dim=0) if falls else torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)


def title(session: Session) -> str:
    """Describe the robot and policy in a few words."""
    if not session.checkpoints:
        return f"{session.task}, no policy: the robot holds its default pose"
    from umc.utils.naming import display_name

    info = session.info
    about = f"{display_name(info.robot)}, {info.model}"
    return f"{about}, stage {info.stage}, iteration {info.iteration}" if info.agent else about
