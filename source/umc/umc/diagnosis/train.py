# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The training of a fault detector beside a walking policy."""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import umc
from umc.utils.config import override_key
from umc.utils.console import duration
from umc.utils.errors import UmcError
from umc.utils.naming import run_stamp

if TYPE_CHECKING:
    from torch import Tensor

    from umc.detection import Detector, DetectorFile
    from umc.diagnosis.faults import RandomFaults
    from umc.diagnosis.learn import Learner, Stretch
    from umc.diagnosis.rollout import Rollout
    from umc.evaluation.session import Session

FILE = "detector.pt"
"""File in the run folder."""

NUM_ENVS = 256
ITERATIONS = 150
STEPS = 50
"""Env steps of an iteration."""

ORACLE_SHARE = 0.25
"""First part of the training, in which the simulator tells the policy what is broken [-]. Afterwards the detector tells
a growing share of the robots, all from twice this part on: it has to learn from what its own mistakes lead to."""

THRESHOLD_SHARE = 0.3
"""Length of the rollouts from which temperature and thresholds are chosen, as part of the training [-].
Half of it is healthy: 150 iterations of 256 envs give 100 minutes, so that one false alarm in 20 is seen five times.
One that starts from another detector gets at least as many as 150 iterations give."""

LATER_HALF = 0.5
"""Where a detector that starts from another begins, as part of a whole training [-]."""

SAVE_EVERY_S = 120.0
LINE_EVERY = 10


@dataclass
class DetectorRun:
    """A training of a detector, before its simulation."""

    session: Session
    folder: Path
    start: DetectorFile | None
    """Detector to start from: the interrupted training's, or that of ``--detector``; None for a new one."""
    about: dict[str, Any]


def prepare_rollout(options: argparse.Namespace, overrides: list[str], faults: RandomFaults) -> Session:
    """Return the policy and its task as it was trained, with random faults and pushes."""
    from umc.diagnosis.task import add_random_faults
    from umc.evaluation.checkpoints import External
    from umc.evaluation.session import prepare
    from umc.mdp.observations import entries
    from umc.rl.checkpoint import DETECTION, trained_overrides
    from umc.rl.external import EXTERNAL_GROUP, GROUP

    if ignored := [token for token in overrides if token.startswith(DETECTION)]:
        raise UmcError(f"{ignored[0]} has no effect where a detector is trained or measured; leave it out")
    session = prepare(options, overrides)
    one = session.checkpoints[0]
    if not isinstance(one, External):  # it walks under the commands, and on the ground, of its training
        session = prepare(options, [*trained_overrides(one.path, one.info, overrides), *overrides])
    cfg = session.env_cfg
    typed = any(override_key(token) == "env.scene.num_envs" for token in overrides)
    options.num_envs = cfg.scene.num_envs = options.num_envs or (cfg.scene.num_envs if typed else NUM_ENVS)
    cfg.seed = options.seed
    groups = entries(cfg.observations)
    for name in groups:
        if name.startswith(EXTERNAL_GROUP):  # as noisy as what the detector reads
            groups[name].enable_corruption = groups[GROUP].enable_corruption
    add_random_faults(cfg, options.seed, not options.no_push, faults)
    return session


def plan(options: argparse.Namespace, overrides: list[str]) -> DetectorRun:
    """Decide everything about a training; raise UmcError if something is wrong with it."""
    from umc.detection import read_detector
    from umc.detection.network import NETWORKS
    from umc.diagnosis.faults import KindRange, without
    from umc.utils.outputs import require_writable

    options.seed = options.seed or 0
    start, origin = None, {}
    if options.detector is not None:
        start = replace(read_detector(options.detector, unfinished=True), resume=None)
        origin = {"detector": {"name": options.detector.name, "sha256": start.sha256}}
        options.network, options.hold_out = start.detector.cfg.network, start.held_out
    held_out = options.hold_out or []
    session = prepare_rollout(options, overrides, without([KindRange.read(text) for text in held_out]))
    one = session.checkpoints[0]
    if start is not None:
        start.require(session.info.robot, one.info.joint_names)
    folder = options.out or Path("logs") / f"umc_{session.info.robot}_detector" / run_stamp()
    about = {
        "policy": {"name": one.path.name, "sha256": one.sha256},
        "task": session.task,
        "seed": options.seed,
        "num_envs": options.num_envs,
        "iterations": options.iterations,
        "network": options.network or NETWORKS[0],
        "pushes": not options.no_push,
        "hold_out": held_out,
        "overrides": overrides,
        "umc_version": umc.__version__,
        **origin,
    }
    if options.resume:
        start = read_detector(folder / FILE, unfinished=True)
        require_resumable(start, about, options.iterations)
    elif (folder / FILE).exists():
        raise UmcError(f"{folder / FILE} exists already; give --resume, or another --out")
    require_writable(folder, "--out")
    return DetectorRun(session, folder, start, about)


def require_resumable(start: DetectorFile, about: dict[str, Any], iterations: int) -> None:
    """Raise UmcError unless an interrupted training can go on as another command line says."""
    if start.resume is None:
        raise UmcError(f"{start.path} is finished, or published without what --resume needs; give another --out")
    if missing := {"done", "optimizer", "episode"} - start.resume.keys():
        raise UmcError(
            f"{start.path} does not hold {min(missing)}, as another version of umc wrote it; give another --out"
        )
    for name in ("policy", "task", "seed", "num_envs", "network", "hold_out", "detector", "pushes", "overrides"):
        before, now = (one.get(name, []) for one in (start.about, about))
        if name == "overrides":  # flags without a value in front of them change their order
            before, now = sorted(before), sorted(now)
        if before != now:
            raise UmcError(f"{start.path} was trained with another {name}; repeat its command line, or leave --resume")
    if start.resume["done"] > iterations:
        raise UmcError(f"{start.path} has {start.resume['done']} iterations already; give more --iterations")


def train(run: DetectorRun) -> Path:
    """Let the policy walk, learn, and write the detector; return its file."""
    import torch

    from umc.diagnosis.learn import Learner, Stretch
    from umc.diagnosis.rollout import Rollout
    from umc.evaluation.session import open_session
    from umc.mdp import fault_state

    session, total = run.session, int(run.about["iterations"])
    torch.manual_seed(int(run.about["seed"]))
    with open_session(session) as (env, (policy,)):
        detector = _begin(run, env).to(env.device).eval()
        resume = None if run.start is None else run.start.resume
        episode = fault_state(env).episode
        if resume is not None:  # faults are drawn from (seed, env, episode): from 0 they would be those it has seen
            episode.copy_(resume["episode"])
        rollout, learner = Rollout(env, policy, detector), Learner(detector)
        robots = torch.arange(env.num_envs, device=env.device)
        done = 0
        if resume is not None:
            done = int(resume["done"])
            learner.optimizer.load_state_dict(resume["optimizer"])
        kept = _snapshot(run, detector, learner, done, episode)
        saved = time.monotonic()
        rate = 0.0
        try:
            while done < total:
                begin = time.monotonic()
                part = part_of_training(done / total, "detector" in run.about)
                rollout.detected_envs = robots < env.num_envs * detected_share(part)
                losses = learner.learn(Stretch.of([rollout.step() for _ in range(STEPS)]), part)
                done += 1
                kept = _snapshot(run, detector, learner, done, episode)
                seconds = time.monotonic() - begin
                rate = seconds if rate == 0.0 else 0.2 * seconds + 0.8 * rate
                if done % LINE_EVERY == 0 or done in (1, total):
                    text = ", ".join(f"{name} loss {loss:.4f}" for name, loss in losses.items())
                    steps = STEPS * env.num_envs / rate
                    eta = duration(rate * (total - done))
                    print(f"iteration {done}/{total}: {steps:,.0f} env-steps/s, ETA {eta}, {text}", flush=True)
                if time.monotonic() - saved > SAVE_EVERY_S:
                    _write(run, kept)
                    saved = time.monotonic()
            unseen = _rollout_for_thresholds(run, kept, rollout)
        except KeyboardInterrupt:
            _write(run, kept)
            print(f"saved {run.folder / FILE}; go on with the same command and --out {run.folder} --resume", flush=True)
            raise
        figures = settle(detector, unseen, env.step_dt, session.options.false_alarms)
        kept = {**kept, "detector": detector, "resume": None, "about": {**kept["about"], "figures": figures}}
        _write(run, kept)
    return run.folder / FILE


def _begin(run: DetectorRun, env: Any) -> Detector:
    """Return the detector that learns."""
    from umc.detection import Detector, DetectorCfg
    from umc.mdp.observations import joint_layout

    if run.start is None:
        return Detector(joint_layout(env), DetectorCfg(network=run.about["network"]))
    run.start.require_layout(joint_layout(env))
    return run.start.detector.requires_grad_(True)


def _rollout_for_thresholds(run: DetectorRun, kept: dict[str, Any], rollout: Rollout) -> list[Stretch]:
    """Return the finished detector's predictions in new rollouts in which all robots depend on it."""
    from umc.diagnosis.learn import Stretch

    _write(run, kept)
    iterations = int(run.about["iterations"])
    if "detector" in run.about:
        iterations = max(iterations, ITERATIONS)
    stretches = max(round(THRESHOLD_SHARE * iterations), 1)
    print(f"choosing thresholds: {stretches} more rollouts of {STEPS} env steps", flush=True)
    rollout.detected_envs |= True
    unseen, begin = [], time.monotonic()
    for done in range(1, stretches + 1):
        unseen.append(Stretch.of([rollout.step() for _ in range(STEPS)]).outputs())
        if done % LINE_EVERY == 0:
            eta = duration((time.monotonic() - begin) / done * (stretches - done))
            print(f"rollout {done}/{stretches}, ETA {eta}", flush=True)
    return unseen


def part_of_training(done: float, goes_on: bool) -> float:
    """Return the part of a whole training that is over [-], given the part of this run that is done."""
    return LATER_HALF + (1.0 - LATER_HALF) * done if goes_on else done


def detected_share(done: float) -> float:
    """Return the share of robots whose policy the detector tells what is broken, from the part that is done [-]."""
    return min(max((done - ORACLE_SHARE) / ORACLE_SHARE, 0.0), 1.0)


def settle(detector: Detector, unseen: Sequence[Stretch], step_dt: float, most: float) -> dict[str, Any]:
    """Set temperature and thresholds by its predictions in rollouts that it does not learn from.

    Return both, with the false alarms of a healthy robot [1/min] and the length of the rollouts [min].
    """
    import torch

    from umc.detection.network import JOINT, SENSOR
    from umc.diagnosis.learn import calibrate
    from umc.diagnosis.thresholds import ON_STEPS, choose

    starts = torch.cat([one.starts for one in unseen])
    labels = torch.cat([one.labels for one in unseen])
    faulty = (labels != 0).flatten(2).any(dim=2)
    figures: dict[str, Any] = {"minutes": faulty.numel() * step_dt / 60.0}
    for name, fault in (("sensor", SENSOR), ("joint", JOINT)):
        predicted = torch.cat([one.log_probabilities[fault] for one in unseen])
        relative = calibrate(detector, predicted, labels[..., fault], fault)
        probability = 1.0 - (predicted / relative).softmax(dim=-1)[..., 0]
        threshold = choose(probability, faulty, starts, step_dt, most)
        if threshold.false_alarms > most:
            print(
                f"{name}s: no threshold keeps --false_alarms {most:g}; {threshold.on} has "
                f"{threshold.false_alarms:.2g} per minute",
                flush=True,
            )
        detector.thresholds[fault] = torch.tensor([threshold.on, threshold.off, float(ON_STEPS)])
        temperature = float(detector.temperature[fault])
        figures[name] = {"temperature": temperature, "steps": ON_STEPS, **asdict(threshold)}
    return figures


def _snapshot(run: DetectorRun, detector: Detector, learner: Learner, done: int, episode: Tensor) -> dict[str, Any]:
    """Return what a file of the training so far holds."""
    optimizer = copy.deepcopy(learner.optimizer.state_dict())
    return {
        "detector": copy.deepcopy(detector),
        "about": run.about,
        "resume": {"done": done, "optimizer": optimizer, "episode": episode.clone()},
    }


def _write(run: DetectorRun, kept: dict[str, Any]) -> None:
    from umc.detection import DetectorFile, write_detector

    run.folder.mkdir(parents=True, exist_ok=True)
    write_detector(run.folder / FILE, DetectorFile(robot=run.session.info.robot, **kept))
