# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What every kind of fault does, as pictures: ``python -m tools.fault_plots --out docs/images``.

A1 walks by a policy; in one env after the other the same joint of the left front leg fails in another way, beside a
healthy twin that does the same up to this moment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from umc.faults.kinds import KINDS, CommandKind, FaultKind, JointKind, SensorKind
from umc.rl.pretrained import pretrained_folder
from umc.utils.cli import Parser, run_main
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHECKPOINT = pretrained_folder() / "a1_mlp_stage1.pt"
"""The policy that comes with the package."""

JOINT = "FL_calf_joint"
"""The joint that fails: the knee that swings most."""

EXAMPLES: dict[str, tuple[float, str]] = {
    "rom": (0.1, "10 % of the range is left"),
    "effort": (5.0, "at most 5 N m"),
    "velocity": (3.0, "at most 3 rad/s"),
    "locked": (0.0, "held where it is"),
    "power_loss": (0.0, "no torque at all"),
    "dead": (0.0, "reads 0, the default pose"),
    "frozen": (0.0, "repeats its last reading"),
    "bias": (0.3, "reads 0.3 rad too much"),
    "drift": (0.4, "slips by 0.4 rad/s"),
    "noise": (0.1, "0.1 rad standard deviation"),
    "dropped": (0.8, "80 % do not arrive"),
    "delayed": (5.0, "5 steps (0.1 s) late"),
}
"""How hard each kind hits, in its unit and in words: the paper's figures for A1 where it has them (its torque in
training, for the knee to show it), else what can be seen."""

ONSET = 100
"""Env step at which the fault sets in; A1 walks steadily after one second."""

BEFORE, AFTER = 30, 60
"""Env steps that are shown on either side."""

LAYERS: dict[str, tuple[type[FaultKind], str]] = {
    "joint": (JointKind, "the joint can do less"),
    "sensor": (SensorKind, "the sensor lies"),
    "command": (CommandKind, "the command gets lost"),
}
"""Pictures: file ``fault_<name>.png``, the kinds on it, and a headline."""

FAULTY, HEALTHY, LIMIT, INK, SHADE = "#c8401a", "#3b78b0", "#6f6f6f", "#333333", "#f8eee8"
"""Colours of the faulty robot, its twin, limits, text, and the time with the fault; told apart by the colour-blind."""

TICKS = (-0.5, 0.0, 0.5, 1.0)
"""Labels of the time axis [s]."""

WIDTH, HEIGHT, DPI, FONT = 3.0, 8.0, 100, 11.0
"""Width of a column and height of a picture [inch], pixels per inch, and size of the text [pt]."""


@dataclass
class Rollout:
    """One joint in several envs over time; every array but ``time`` has the shape (T, E)."""

    time: NDArray[np.floating[Any]]
    """Time since onset [s]. Shape is (T,)."""
    envs: list[str]
    """The kind that each env meets; the last one is the healthy twin."""
    arrays: dict[str, NDArray[np.floating[Any]]] = field(default_factory=dict)
    """``position`` [rad], ``speed`` [rad/s], ``torque`` [N*m], ``read`` (position as the policy reads it [rad]),
    ``sent`` and ``arrived`` (targets [rad]), ``lower``, ``upper``, ``effort`` and ``velocity`` (what is left)."""

    def of(self, name: str, kind: str | None = None) -> NDArray[np.floating[Any]]:
        """One quantity of one env."""
        return self.arrays[name][:, -1 if kind is None else self.envs.index(kind)]


def roll_out(checkpoint: Path, physics: str) -> Rollout:
    """Let A1 walk into every kind of fault."""
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from umc import mdp
    from umc.mdp.fault_terms import fault_term
    from umc.rl.policy import load_policy
    from umc.robots import A1_JOINTS
    from umc.utils import patches

    patches.apply()
    torch.set_num_threads(1)
    kinds = [*EXAMPLES, "healthy"]
    env: Any = ManagerBasedRLEnv(env_cfg(kinds, physics))
    widths = {name: shape[0] for name, shape in env.observation_manager.group_obs_dim.items()}
    policy = load_policy(checkpoint, widths, env.device, "a1", list(A1_JOINTS))
    robot, term, state = env.scene["robot"], env.action_manager.get_term("joint_pos"), mdp.fault_state(env)
    writer = fault_term(env).writer
    assert writer is not None  # joints break here
    joint = robot.joint_names.index(JOINT)
    rest = robot.data.default_joint_pos.torch[:, joint].clone()
    position_column = env.observation_manager.group_obs_dim["policy"][0] - 3 * len(A1_JOINTS) + joint
    log: dict[str, list[Any]] = {}
    observed = env.reset()[0]
    for step in range(1, ONSET + AFTER + 1):
        observed = env.step(policy(observed).clone())[0]
        if step < ONSET - BEFORE:
            continue
        limits = state.limits(writer.healthy)
        now = {
            "position": robot.data.joint_pos.torch[:, joint],
            "speed": robot.data.joint_vel.torch[:, joint],
            "torque": robot.actuators.applied_effort.torch[:, joint],
            "read": observed["policy"][:, position_column] + rest,
            "sent": term.processed_actions[:, joint],
            "arrived": robot.actuators.target_command.position.torch[:, joint],
            **{name: getattr(limits, name)[:, joint] for name in ("lower", "upper", "effort", "velocity")},
        }
        for name, value in now.items():
            log.setdefault(name, []).append(value.cpu().double().numpy().copy())
    time = (np.arange(-BEFORE, AFTER + 1)) * env.step_dt
    return Rollout(time, kinds, {name: np.stack(values) for name, values in log.items()})


def env_cfg(kinds: list[str], physics: str) -> Any:
    """A1's task with one env per kind, all of which start and walk alike."""
    from isaaclab.managers import SceneEntityCfg
    from isaaclab_tasks.utils import resolve_presets
    from umc import mdp
    from umc.tasks.a1.env_cfg import A1Stage2EnvCfg
    from umc.terrains import FLAT_GROUND_CFG

    cfg: Any = resolve_presets(A1Stage2EnvCfg(), [physics, "flat"])
    cfg.scene.num_envs, cfg.scene.terrain = len(kinds), FLAT_GROUND_CFG
    cfg.observations.policy.enable_corruption = False
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    for name, event in vars(cfg.events).items():
        if event.mode == "startup":
            setattr(cfg.events, name, None)
    cfg.events.reset_base.params |= {"pose_range": {}, "velocity_range": {}}
    cfg.events.reset_joints.params["position_range"] = (1.0, 1.0)
    for name in vars(cfg.terminations):
        if name != "time_out":  # the film goes on if the robot falls
            setattr(cfg.terminations, name, None)
    cfg.events.faults.params = {
        "asset_cfg": SceneEntityCfg("robot", joint_names=[JOINT]),
        "severity": {kind: severity for kind, (severity, _) in EXAMPLES.items()},
        "scenario": [*kinds[:-1], "normal"],
        "num_joints": (1, 1),
        "onset": ONSET,
        "seed": 1,
    }
    return cfg


def draw(rollout: Rollout, layer: str) -> Any:
    """Draw the kinds of one layer side by side, each from position to what is read or sent."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = [kind for kind in rollout.envs if isinstance(KINDS.get(kind), LAYERS[layer][0])]
    last = "target [rad]" if layer == "command" else "as the policy\nreads it [rad]"
    rows = ("position [rad]", "speed [rad/s]", "torque [N m]", last)
    settings: Any = {"font.size": FONT, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": "#999999"}
    settings |= {"xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(settings):
        size = (WIDTH * max(len(kinds), 3), HEIGHT)
        figure, axes = plt.subplots(4, len(kinds), figsize=size, sharex=True, sharey="row", squeeze=False)
        for column, kind in enumerate(kinds):
            _draw_kind(rollout, layer, kind, list(axes[:, column]))
        for axis, label in zip(axes[:, 0], rows, strict=True):
            axis.set_ylabel(label)
        for axis in axes[-1]:
            axis.set_xlabel("time since onset [s]")
        for axis in axes.flat:
            axis.axvspan(0.0, rollout.time[-1], color=SHADE, zorder=0, linewidth=0)
            axis.set_xlim(rollout.time[0], rollout.time[-1])
            axis.set_xticks(TICKS)
            axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        figure.align_ylabels(axes[:, 0])
        handles = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
        handles = {label: line for label, line in handles.items() if not str(label).startswith("_")}
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="upper right",
            ncols=len(handles),
            frameon=False,
            handlelength=1.6,
        )
        figure.suptitle(f"{JOINT}: {LAYERS[layer][1]}", x=0.01, ha="left", fontsize=1.25 * FONT, fontweight="bold")
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.985))
    return figure


def _draw_kind(rollout: Rollout, layer: str, kind: str, axes: list[Axes]) -> None:
    """One column: position, speed, torque, and what is read or sent."""
    axes[0].set_title(f"{kind}\n", fontsize=1.1 * FONT, fontweight="bold")
    axes[0].text(0.5, 1.05, EXAMPLES[kind][1], transform=axes[0].transAxes, ha="center")
    time = rollout.time
    names = ("position", "speed", "torque", "read")
    for axis, name in zip(axes, names, strict=True):
        if name == "read" and layer == "command":
            axis.step(time, rollout.of("sent", kind), where="post", color=LIMIT, linewidth=1.2, label="target sent")
            axis.step(time, rollout.of("arrived", kind), where="post", color=FAULTY, linewidth=1.8)
            continue
        if name == "read" and layer == "sensor":
            axis.plot(time, rollout.of("position", kind), color=LIMIT, linewidth=1.2, label="true position")
        if name != "read":
            axis.plot(time, rollout.of(name), color=HEALTHY, linewidth=1.4, label="healthy twin")
        axis.plot(time, rollout.of(name, kind), color=FAULTY, linewidth=1.8, label="with the fault")
    if layer == "joint":
        for axis, (low, high) in zip(axes, (("lower", "upper"), (None, "velocity"), (None, "effort")), strict=False):
            upper = rollout.of(high, kind)
            lower = rollout.of(low, kind) if low else -upper
            for bound, usual in ((lower, lower[0]), (upper, upper[0])):
                shown = np.where(bound == usual, np.nan, bound)  # only where the fault has moved it
                axis.plot(time, shown, color=LIMIT, linewidth=1.2, linestyle=(0, (3, 2)), label="limit")


def save(figure: Any, path: Path) -> None:
    """Write a picture with few colours, which is small."""
    import io

    import matplotlib.pyplot as plt
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DPI, facecolor="white")
    plt.close(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(64).save(path, optimize=True)


def main(argv: Sequence[str]) -> int:
    """Draw the three pictures; return the exit status."""
    return run_main(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = Parser(
        prog="python -m tools.fault_plots", description="Draw what every kind of fault does to a walking A1."
    )
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder for the pictures")
    parser.add_argument("--checkpoint", type=Path, default=CHECKPOINT, help="policy of A1 (default: %(default)s)")
    parser.add_argument("--physics", default="newton_mjwarp", choices=("newton_mjwarp", "ovphysx"), help="engine")
    options = parser.parse_args(argv)
    if not options.checkpoint.is_file():
        raise UmcError(f"there is no checkpoint {options.checkpoint}; name one by --checkpoint")
    rollout = roll_out(options.checkpoint, options.physics)
    for layer in LAYERS:
        path = options.out / f"fault_{layer}.png"
        save(draw(rollout, layer), path)
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the teardown of an engine may hang
