# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the documentation: ``python -m tools.docs_figures {curves,faults,portrait,strip,terrain} ...``.

* ``curves FOLDER``: learning curves of a recipe, from its folder under ``logs/recipes``
* ``faults --out DIR``: what every kind of fault does to a walking A1
* ``portrait TASK --out PNG``: a task's robot as it stands without a policy
* ``strip --checkpoint PATH --out PNG``: the walk of a healthy robot in a row of stills
* ``terrain PNG``: the A1 tracks from above
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from umc.evaluation.arguments import add_policy_arguments, parse
from umc.evaluation.report.plots import STYLE
from umc.faults.kinds import KINDS
from umc.rendering.layout import Heading, storyboard
from umc.rendering.writers import write_png
from umc.rl.pretrained import pretrained_folder
from umc.training.recipe_runner import STATE, RecipeState
from umc.utils.cli import Parser, run_main
from umc.utils.config import validated
from umc.utils.errors import UmcError
from umc.utils.io import atomic_path
from umc.utils.text import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = {
    "Train/mean_reward": "reward of an episode",
    "Train/mean_episode_length": "length of an episode [steps]",
    "Policy/mean_std": "action noise (std)",
}
"""TensorBoard tags of rsl_rl, and their titles."""

SETTLED = 30
"""Env steps before the portrait: the robot stands on the ground by then; the humanoids fall a second later."""

PORTRAIT_SIZE, PORTRAIT_CROP = 800, (slice(144, 624), slice(160, 640))
"""Width and height of the camera's picture [px], and the rows and columns of it that hold the robot."""

STILL_SIZE, KEPT = (480, 360), 0.62
"""Width and height of a still [px], and the part of its width that is kept around the robot [-]."""

LENGTH, WIDTHS = 12.0, {"training": 4.8, "inference": 3.0}
"""Part of the tracks that is drawn [m], by table of the paper."""

JOINT = "FL_calf_joint"
"""The joint that fails: the knee that swings most."""

EXAMPLES: dict[str, dict[str, tuple[float, str]]] = {
    "joint": {
        "rom": (0.1, "10 % of the range is left"),
        "effort": (5.0, "at most 5 N m"),
        "velocity": (3.0, "at most 3 rad/s"),
        "locked": (0.0, "held where it is"),
        "power_loss": (0.0, "no torque at all"),
    },
    "motor": {
        "braking": (3.0, "windings shorted, 3 N m s/rad"),
        "derating": (1.0, "overheats above 1 N m"),
        "friction": (5.0, "5 N m of dry friction"),
    },
    "sensor": {
        "dead": (0.0, "reads 0, the default pose"),
        "frozen": (0.0, "repeats its last reading"),
        "bias": (0.3, "reads 0.3 rad too much"),
        "drift": (0.4, "slips by 0.4 rad/s"),
        "noise": (0.1, "0.1 rad standard deviation"),
    },
    "imu": {
        "imu_bias": (0.5, "0.5 rad/s off, random axis"),
        "imu_drift": (0.3, "drifts at 0.3 rad/s"),
        "imu_frozen": (0.0, "repeats its last reading"),
        "imu_dead": (0.0, "reads 0"),
    },
    "command": {
        "dropped": (0.8, "80 % do not arrive"),
        "delayed": (5.0, "5 steps (0.1 s) late"),
        "burst_loss": (10.0, "bursts of 10 steps (0.2 s)"),
        "growing_delay": (0.1, "1 step later every 10"),
        "backlash": (0.3, "0.3 rad of play"),
    },
}
"""Kinds of each picture with a severity, in its unit and in words: the paper's for A1 where it has one (effort: that of
training)."""

SEVERITIES = {kind: severity for kinds in EXAMPLES.values() for kind, (severity, _) in kinds.items()}

ONSET, BEFORE, AFTER = 100, 30, 60
"""Env step of the fault, when A1 walks steadily, and env steps that are shown before and after it."""

HEADLINES = {
    "joint": f"{JOINT}: the joint can do less",
    "motor": f"{JOINT}: motor or gearbox fail",
    "sensor": f"{JOINT}: the sensor reads wrong",
    "imu": "the IMU reads wrong",
    "command": f"{JOINT}: the command does not reach the joint as sent",
}
"""Headlines of the pictures ``fault_<name>.png``."""

LAST_ROWS = {
    "imu": ("pitch rate\n[rad/s]", "gravity along x [-]"),
    "command": ("torque [N m]", "target [rad]"),
    None: ("torque [N m]", "as the policy\nreads it [rad]"),
}
"""Labels of the last two rows of a picture, below position and speed."""

FAULTY, HEALTHY, LIMIT, SHADE = "#c8401a", "#3b78b0", "#6f6f6f", "#f8eee8"
"""Colors of the faulty robot, its healthy twin, limits, and the time with the fault."""

FONT = 11.0
FAULT_STYLE = STYLE | {"font.size": FONT, "axes.grid": True, "axes.grid.axis": "y", "axes.xmargin": 0.0}
"""Settings of matplotlib for the pictures of faults."""


def save(figure: Any, path: Path, dpi: int, colors: int | None = None) -> None:
    """Write and close a figure of matplotlib; a palette of few colors makes it small."""
    import matplotlib.pyplot as plt

    with atomic_path(path, sync=False) as part:
        figure.savefig(part, dpi=dpi, format="png")
        plt.close(figure)
        if colors is not None:
            Image.open(part).convert("RGB").quantize(colors).save(part, format="png", optimize=True)


def latest(rows: Sequence[Any]) -> tuple[list[int], list[float]]:
    """Return steps and values of a scalar; what a resumed run simulated again replaces what it had logged before."""
    kept: dict[int, float] = {}
    for row in sorted(rows, key=lambda row: row.wall_time):
        for step in [step for step in kept if step >= row.step]:
            del kept[step]
        kept[row.step] = row.value
    return list(kept), list(kept.values())


def plot_recipe(folder: Path, out: Path) -> None:
    """Draw reward, episode length and action noise over the phases of a recipe, which are numbered."""
    import matplotlib.pyplot as plt
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fix = "name the folder of a recipe, under logs/recipes"
    state = validated(RecipeState, read_json(folder / STATE, fix), f"{folder / STATE} is damaged ({fix})")
    figure, axes = plt.subplots(1, len(CURVES), figsize=(10.0, 3.2), layout="constrained")
    begins, start, end, run_dir = [], 0, 0, ""
    for number, phase in enumerate(state.phases):
        if phase.run_dir == run_dir:  # it continues the run of the phase before
            begins.append(start + int(Path(str(state.phases[number - 1].checkpoint)).stem.rpartition("_")[2]))
            continue
        start, run_dir = end, phase.run_dir
        begins.append(start)
        events = EventAccumulator(run_dir, size_guidance={"scalars": 0})
        events.Reload()
        for axis, tag in zip(axes, CURVES, strict=True):
            if tag not in events.Tags()["scalars"]:
                raise UmcError(f"no learning curve in {run_dir}: its TensorBoard files are missing")
            steps, values = latest(events.Scalars(tag))
            axis.plot([start + step for step in steps], values, color="#1f5f8b", linewidth=1.2)
            end = max(end, start + steps[-1] + 1)
    for axis, label in zip(axes, CURVES.values(), strict=True):
        axis.set(title=label, xlabel="iteration", xlim=(0, end))
        axis.margins(y=0.14)  # room for the numbers
        axis.grid(alpha=0.3)
        for number, (left, right) in enumerate(itertools.pairwise([*begins, end]), 1):
            axis.axvline(left, color="#8a8a8a", linestyle=":", linewidth=1.2)
            place = ((left + right) / 2, 0.97)
            axis.text(*place, str(number), transform=axis.get_xaxis_transform(), ha="center", va="top", weight="bold")
    names = "   ".join(f"{number}: {phase.title}" for number, phase in enumerate(state.phases, 1))
    figure.suptitle(f"{state.recipe}:   {names}")
    save(figure, out, dpi=130)


def draw_terrain(path: Path) -> None:
    """Draw the first blocks of the training and of the inference tracks from above, and heights along a track."""
    import matplotlib.pyplot as plt
    from umc.faults import paper_settings
    from umc.terrains.perlin import perlin_heights
    from umc.terrains.tracks import perlin_tracks

    figure, axes = plt.subplots(3, 1, figsize=(9.0, 8.2), sharex=True, height_ratios=(4.8, 3, 2), layout="constrained")
    for axis, (table, width) in zip(axes, WIDTHS.items(), strict=False):
        rows = paper_settings("a1", table)
        seeds = tuple(np.atleast_1d(rows["perlin_seed"]).tolist())
        tracks = perlin_tracks(rows["track_width"], rows["track_block_length"], rows["border_size"], seeds)
        grid = tracks.terrain_generator
        blocks = [
            [perlin_heights(*grid.block(row, column)).T for row in range(round(LENGTH / grid.size[0]))]
            for column in range(math.ceil(width / grid.size[1]))
        ]
        extent = (0, LENGTH, 0, len(blocks) * grid.size[1])
        seen = axis.imshow(100.0 * np.block(blocks), cmap="cividis", vmin=0, vmax=15, origin="lower", extent=extent)
        size = f"{grid.size[0]:g} m x {grid.size[1]:g} m"
        shown = f"seed {seeds[0]}" + (f" (other tracks: {', '.join(map(str, seeds[1:]))})" if seeds[1:] else "")
        axis.set(ylim=(0, width), ylabel="y [m]")
        axis.set_title(f"{table.capitalize()}: blocks of {size}, {shown}", loc="left", weight="bold")
        if table == "training":
            middle = np.concatenate([block[block.shape[0] // 2, :-1] for block in blocks[0]])
            axes[2].fill_between(np.arange(len(middle)) * 0.025, 100.0 * middle, color="0.6")
    figure.colorbar(seen, ax=axes[:2], label="height [cm]", pad=0.02, aspect=40)
    axes[2].set_title("Training: along the middle of the lowest track", loc="left", weight="bold")
    axes[2].set(xlabel="x [m]; robots start at the left and walk to the right", ylabel="height [cm]", xlim=(0, LENGTH))
    save(figure, path, dpi=100, colors=256)


def exact_cfg(task: str, overrides: Sequence[str], num_envs: int, steps: int) -> Any:
    """Return a task whose envs all start in the default pose, with the same body, and are not reset by falls."""
    from umc.evaluation.conditions import disable_training_randomization, drop_events
    from umc.tasks.registry import checked_task
    from umc.tasks.task_cfg import resolve_cfgs

    env_cfg, _ = resolve_cfgs(checked_task(task), None, list(overrides))
    env_cfg.sim.device = "cpu"
    command = (0.0, 0.0, 0.0) if num_envs == 1 else (0.5, 0.0, 0.0)
    disable_training_randomization(env_cfg, command, num_envs, steps, seed=1)
    for name in vars(env_cfg.terminations):
        if name != "time_out":
            setattr(env_cfg.terminations, name, None)
    drop_events(env_cfg, "startup")
    env_cfg.events.reset_joints.params["position_range"] = (1.0, 1.0)
    env_cfg.events.reset_base.params.update(pose_range={}, velocity_range={})
    return env_cfg


def draw_portrait(task: str, path: Path, overrides: Sequence[str] = ()) -> None:
    """Let the robot of a task stand on its default pose and write a picture of it."""
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.evaluation.conditions import set_healthy
    from umc.mdp import fault_state
    from umc.rendering.camera import CAMERA, FollowCamera, camera_cfg

    env_cfg = exact_cfg(task, overrides, 1, SETTLED)
    set_healthy(env_cfg)
    setattr(env_cfg.scene, CAMERA, camera_cfg(PORTRAIT_SIZE, PORTRAIT_SIZE))
    env = ManagerBasedRLEnv(env_cfg)
    env.reset()
    camera = FollowCamera(env, fault_state(env), "front")
    for _ in range(SETTLED):
        env.step(torch.zeros(1, env.action_manager.total_action_dim))
        camera.follow()
    write_png(path, camera.render()[PORTRAIT_CROP])


@dataclass(frozen=True)
class Rollout:
    """One joint in several envs over time."""

    time: NDArray[np.floating[Any]]
    """Time since onset [s]. Shape is (T,)."""
    envs: Sequence[str]
    """The kind of fault of each env; the last one is the healthy twin."""
    arrays: Mapping[str, NDArray[np.floating[Any]]]
    """``position`` [rad], ``speed`` [rad/s], ``torque`` [N*m], ``read`` (position as the policy reads it [rad]),
    ``sent``, ``arrived`` (targets [rad]), ``rate``, ``down`` (pitch rate [rad/s] and gravity along x as the policy
    reads them; ``true rate``, ``true down``), ``lower``, ``upper``, ``effort``, ``velocity`` (limits); shape (T, E)."""

    def of(self, name: str, kind: str | None = None) -> NDArray[np.floating[Any]]:
        """Return one quantity in the env of a kind, or of the healthy twin. Shape is (T,)."""
        return self.arrays[name][:, -1 if kind is None else self.envs.index(kind)]


def example_faults() -> dict[str, Any]:
    """Return the faults of envs that have one kind each, and none in the last."""
    return {
        "severity": {kind: severity for kind, severity in SEVERITIES.items() if KINDS[kind].unit},
        "scenario": [*SEVERITIES, "normal"],
        "num_joints": (1, 1),
        "onset": ONSET,
        "seed": 1,
    }


def roll_out(checkpoint: Path, physics: str) -> Rollout:
    """Let one A1 for each kind of fault walk into it."""
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.managers import SceneEntityCfg
    from umc import mdp
    from umc.mdp.fault_terms import fault_term
    from umc.rl.policy import load_policy

    kinds = list(SEVERITIES)
    overrides = [f"physics={physics}", "env.scene.terrain=flat"]
    env_cfg = exact_cfg("UMC-A1-Stage2", overrides, len(kinds) + 1, ONSET + AFTER)
    env_cfg.actions.command_faults = mdp.CommandFaultsCfg()
    mdp.add_imu_sensors(env_cfg)
    env_cfg.events.faults.params = {"asset_cfg": SceneEntityCfg("robot", joint_names=[JOINT]), **example_faults()}
    env: Any = ManagerBasedRLEnv(env_cfg)
    widths = {name: shape[0] for name, shape in env.observation_manager.group_obs_dim.items()}
    robot, term, state = env.scene["robot"], env.action_manager.get_term("joint_pos"), mdp.fault_state(env)
    policy = load_policy(checkpoint, widths, env.device, "a1", list(state.joint_names))
    writer = fault_term(env).writer
    assert writer is not None  # joints break here
    joint = robot.joint_names.index(JOINT)
    column = widths["policy"] - 3 * len(robot.joint_names) + joint
    base = column - joint - 9  # angular velocity, gravity and command come before the joints
    rest = robot.data.default_joint_pos.torch[:, joint].clone()
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
            "read": observed["policy"][:, column] + rest,
            "rate": observed["policy"][:, base + 1] / env_cfg.observations.policy.base_ang_vel.scale,
            "true rate": robot.data.root_ang_vel_b.torch[:, 1],
            "down": observed["policy"][:, base + 3],
            "true down": robot.data.projected_gravity_b.torch[:, 0],
            "sent": term.processed_actions[:, joint],
            "arrived": robot.actuators.target_command.position.torch[:, joint],
            **{name: getattr(limits, name)[:, joint] for name in ("lower", "upper", "effort", "velocity")},
        }
        for name, value in now.items():
            log.setdefault(name, []).append(value.cpu().double().numpy().copy())
    time = np.arange(-BEFORE, AFTER + 1) * env.step_dt
    return Rollout(time, [*kinds, "healthy"], {name: np.stack(values) for name, values in log.items()})


def draw_faults(rollout: Rollout, layer: str) -> Any:
    """Draw the kinds of one layer side by side, each from position to what is read or sent."""
    import matplotlib.pyplot as plt

    kinds = EXAMPLES[layer]
    rows = ["position [rad]", "speed [rad/s]", *LAST_ROWS.get(layer, LAST_ROWS[None])]
    if layer == "imu":  # its headline names no joint, since it breaks none
        rows[:2] = (f"{JOINT.removesuffix('_joint')}\n{row}" for row in rows[:2])
    with plt.rc_context(FAULT_STYLE):
        size = (3.0 * max(len(kinds), 3), 8.0)
        figure, axes = plt.subplots(4, len(kinds), figsize=size, sharex=True, sharey="row", layout="constrained")
        for kind, column in zip(kinds, axes.T, strict=True):
            _draw_kind(rollout, layer, kind, column)
            column[-1].set(xlabel="time since onset [s]", xticks=(-0.5, 0.0, 0.5, 1.0))
        for axis, label in zip(axes[:, 0], rows, strict=True):
            axis.set_ylabel(label)
        for axis in axes.flat:
            axis.axvspan(0.0, rollout.time[-1], color=SHADE, zorder=0, linewidth=0)
        figure.align_ylabels(axes[:, 0])
        handles = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
        handles = {label: line for label, line in handles.items() if not str(label).startswith("_")}
        figure.legend(
            list(handles.values()), list(handles), loc="outside upper right", ncols=len(handles), frameon=False
        )
        figure.suptitle(HEADLINES[layer], x=0.01, ha="left", fontsize=1.25 * FONT, fontweight="bold")
    return figure


def _draw_kind(rollout: Rollout, layer: str, kind: str, axes: Sequence[Axes]) -> None:
    """Draw a column: position, speed, torque and what is read or sent; of the IMU, its two readings instead."""
    time = rollout.time
    axes[0].set_title(f"{kind}\n", fontsize=1.1 * FONT, fontweight="bold")
    axes[0].text(0.5, 1.05, EXAMPLES[layer][kind][1], transform=axes[0].transAxes, ha="center")
    faulty: dict[str, Any] = {"color": FAULTY, "linewidth": 1.8}
    limit: dict[str, Any] = {"color": LIMIT, "linewidth": 1.2}
    for axis, name in zip(axes[: 2 if layer == "imu" else 3], ("position", "speed", "torque"), strict=False):
        axis.plot(time, rollout.of(name), color=HEALTHY, linewidth=1.4, label="healthy twin")
        axis.plot(time, rollout.of(name, kind), **faulty, label="with the fault")
    if layer == "imu":
        for axis, name in zip(axes[2:], ("rate", "down"), strict=True):
            axis.plot(time, rollout.of(f"true {name}", kind), **limit, label="true value")
            axis.plot(time, rollout.of(name, kind), **faulty, label="with the fault")
    elif layer == "command":
        axes[3].step(time, rollout.of("sent", kind), where="post", **limit, label="target sent")
        axes[3].step(time, rollout.of("arrived", kind), where="post", **faulty)
    else:
        if layer == "sensor":
            axes[3].plot(time, rollout.of("position", kind), **limit, label="true position")
        axes[3].plot(time, rollout.of("read", kind), **faulty, label="with the fault")
    if layer in ("joint", "motor"):
        lows = (rollout.of("lower", kind), -rollout.of("velocity", kind), -rollout.of("effort", kind))
        for axis, low, high in zip(axes, lows, ("upper", "velocity", "effort"), strict=False):
            for bound in (low, rollout.of(high, kind)):
                changed = np.where(bound == bound[0], np.nan, bound)  # only where the fault has changed it
                axis.plot(time, changed, linestyle=(0, (3, 2)), **limit, label="limit")


def _strip_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--begin", type=float, default=3.0, help="time of the first still [s]; %(default)s, at full speed, without it")
    add("--apart", type=float, default=0.06, help="time between two stills [s]; %(default)s without it")
    add("--stills", type=int, default=6, help="how many; %(default)s, one cycle of A1's gait, without it")


def draw_strip(argv: list[str]) -> None:
    """Film a walk and write the stills of it that the flags ask for."""
    from umc.evaluation.arguments import HEALTHY
    from umc.evaluation.session import prepare
    from umc.rendering.film import film_takes, robot_title
    from umc.rendering.film_cfg import FilmCfg
    from umc.utils.console import quiet

    with quiet():
        options, overrides = parse(argv, _strip_arguments)
        if options.out is None or options.out.suffix.lower() != ".png":
            raise UmcError("--out must name a .png file")
        if len(options.checkpoint or ()) > 1:
            raise UmcError("one walk is shown; give one --checkpoint")
        if not all(0.0 < time < math.inf for time in (options.begin, options.apart)) or options.stills < 2:
            raise UmcError("--begin and --apart must be above 0 s, --stills at least 2")
        session = prepare(options, overrides, stage=1)
    options.names, options.num_envs = None, 1
    step_dt = session.env_cfg.sim.dt * session.env_cfg.decimation
    first, apart = (max(round(time / step_dt), 1) for time in (options.begin, options.apart))
    steps = [first + number * apart for number in range(options.stills)]
    cfg = FilmCfg(steps=steps[-1] + 1, scenario=HEALTHY, onset=1, size=STILL_SIZE)
    (take,), step_dt = film_takes(session, cfg.protocol(session.info.robot, options.seed), cfg, frozenset(steps))
    if take.ended is not None:
        print(f"the robot fell at {take.ended * step_dt:.1f} s")
    cut, info, take.name = round(take.frames[0].shape[1] * (1.0 - KEPT) / 2), session.info, ""
    take.frames = [np.ascontiguousarray(frame[:, cut:-cut]) for frame in take.frames]
    seconds = (steps[-1] - steps[0]) * step_dt
    speed = (take.moments[-1].distance - take.moments[0].distance) / seconds
    policy = f"{robot_title(session)}, {info.model}, stage {info.stage}, iteration {info.iteration}"
    heading = Heading(f"{policy}: {speed:.2f} m/s over these {seconds:.1f} s", cfg.steps, step_dt, onset=None)
    write_png(options.out, storyboard([take], heading, take.frames[0].shape[1], options.stills))


def _faults(options: argparse.Namespace) -> None:
    if not options.checkpoint.is_file():
        raise UmcError(f"there is no checkpoint {options.checkpoint}; name one by --checkpoint")
    rollout = roll_out(options.checkpoint, options.physics)
    for layer in EXAMPLES:
        save(draw_faults(rollout, layer), options.out / f"fault_{layer}.png", dpi=100, colors=64)


def _parser() -> Parser:
    form = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="python -m tools.docs_figures", description=__doc__, formatter_class=form)
    pictures = parser.add_subparsers(dest="picture", required=True)
    curves = pictures.add_parser("curves")
    curves.add_argument("folder", type=Path, help="folder of the recipe, under logs/recipes")
    curves.add_argument("--out", type=Path, help="picture to write (default: curve.png in the folder)")
    faults = pictures.add_parser("faults")
    faults.add_argument("--out", type=Path, default=Path("docs/images"), help="folder (default: %(default)s)")
    faults.add_argument("--checkpoint", type=Path, default=pretrained_folder() / "a1_mlp_stage1.pt", help="A1's policy")
    faults.add_argument("--physics", default="newton_mjwarp", choices=("newton_mjwarp", "ovphysx"), help="engine")
    portrait = pictures.add_parser("portrait")
    portrait.add_argument("task", help="id of the task; presets and overrides may follow")
    portrait.add_argument("--out", type=Path, required=True, help="PNG to write")
    strip = pictures.add_parser("strip")
    add_policy_arguments(strip)
    _strip_arguments(strip)
    pictures.add_parser("terrain").add_argument("out", type=Path, help="PNG to write")
    return parser


def main(argv: list[str]) -> int:
    """Draw the picture that the command line asks for; return the exit status."""
    options, overrides = _parser().parse_known_args(argv)
    if overrides and options.picture not in ("portrait", "strip"):
        raise UmcError(f"unknown argument {overrides[0]}; --help lists all")
    import matplotlib

    matplotlib.use("Agg")
    match options.picture:
        case "curves":
            options.out = options.out or options.folder / "curve.png"
            plot_recipe(options.folder, options.out)
        case "faults":
            _faults(options)
        case "portrait":
            draw_portrait(options.task, options.out, overrides)
        case "strip":
            draw_strip(argv[1:])
        case "terrain":
            draw_terrain(options.out)
    print(f"written: {options.out}", flush=True)
    return 0


if __name__ == "__main__":
    status = run_main(main, sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the teardown of an engine may hang
