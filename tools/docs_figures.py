# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the documentation: ``python -m tools.docs_figures {curves,portrait,strip,terrain} ...``.

* ``curves RUN_DIR``: learning curves of a run
* ``portrait TASK --out PNG``: a task's robot as it stands without a policy
* ``strip --checkpoint PATH --out PNG``: the walk of a healthy robot in a row of stills
* ``terrain PNG``: the A1 tracks from above

Those of every kind of fault are drawn by :mod:`tools.fault_plots`, those of a report by :mod:`tools.demo_study`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from umc.rendering.layout import INK, PALE, PAPER, Take
from umc.rendering.writers import Frame
from umc.utils.cli import Parser, run_main
from umc.utils.errors import UmcError

PANELS = (
    ("Train/mean_reward", "reward of an episode"),
    ("Train/mean_episode_length", "length of an episode [steps]"),
    ("Policy/mean_std", "action noise (std)"),
)
"""TensorBoard tags of rsl_rl, and their titles."""

PORTRAIT_SIZE = 800
"""Width and height of the camera's picture [px]."""

PORTRAIT_CROP = (160, 144, 640, 624)
"""The part of it that holds the robot: left, upper, right and lower edge [px]."""

SETTLED = 30
"""Env steps before the portrait: 0.6 s, when the robot has met the ground; the humanoids fall a second later."""

BEGIN, APART, STILLS = 3.0, 0.06, 6
"""Time of the first still, time between two [s], and how many: the robot has come up to its speed, and the strip shows
0.3 s, which is one cycle of the pretrained A1 policy."""

PANEL = (480, 360)
"""Width and height of a still [px]."""

KEPT = 0.62
"""Part of its width that a still keeps, around the robot [-]."""

GAP, MARGIN, LETTERS = 4, 8, 18
"""White between stills, around texts, and height of letters [px]."""

LENGTH, WIDTH = 12.0, 6.4
"""Part of the tracks that is drawn [m]."""


def read_scalars(run_dir: Path, tags: tuple[str, ...]) -> dict[str, tuple[list[int], list[float]]]:
    """Read scalars from every TensorBoard file of a run, resumed parts included."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run_dir), size_guidance={"scalars": 0})
    events.Reload()
    present = set(events.Tags()["scalars"])
    curves = {}
    for tag in tags:
        if tag in present:
            rows = events.Scalars(tag)
            curves[tag] = ([row.step for row in rows], [row.value for row in rows])
    if not curves:
        raise UmcError(f"no learning curve in {run_dir}: name a run folder that holds TensorBoard files")
    return curves


def plot_run(run_dir: Path, out: Path, title: str | None = None) -> None:
    """Draw reward, episode length and action noise over the iterations."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = read_scalars(run_dir, tuple(tag for tag, _ in PANELS))
    figure, axes = plt.subplots(1, len(PANELS), figsize=(12.0, 3.4), layout="constrained")
    for axis, (tag, label) in zip(axes, PANELS, strict=True):
        axis.set_xlabel("iteration")
        axis.set_title(label, fontsize=10)
        axis.grid(alpha=0.3)
        if tag in curves:
            axis.plot(*curves[tag], color="#1f5f8b", linewidth=1.4)
    figure.suptitle(title or f"{run_dir.parent.name} / {run_dir.name}", fontsize=11)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    plt.close(figure)


def draw_terrain(path: Path) -> None:
    """Draw the first blocks of the training and of the inference tracks from above, and heights along a track."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import LightSource
    from umc.faults import paper_settings
    from umc.terrains.perlin import perlin_heights
    from umc.terrains.tracks import perlin_tracks

    figure, axes = plt.subplots(3, 1, figsize=(9.0, 11.0), height_ratios=(6.4, 6.4, 2.5), layout="constrained")
    light = LightSource(azdeg=315, altdeg=40)
    for axis, table in zip(axes, ("training", "inference"), strict=False):
        rows = paper_settings("a1", table)
        seed = np.atleast_1d(rows["perlin_seed"]).tolist()
        grid = perlin_tracks(
            rows["track_width"], rows["track_block_length"], rows["border_size"], tuple(seed)
        ).terrain_generator
        blocks = [
            [perlin_heights(*grid.block(row, column)).T for row in range(round(LENGTH / grid.size[0]))]
            for column in range(int(np.ceil(WIDTH / grid.size[1])))
        ]
        heights = np.block(blocks)
        image = light.shade(
            heights, plt.get_cmap("gist_earth"), vert_exag=1.0, dx=0.025, dy=0.025, vmin=-0.1, vmax=0.25
        )
        axis.imshow(image, origin="lower", extent=(0, LENGTH, 0, len(blocks) * grid.size[1]))
        axis.set_ylim(0, WIDTH)
        seeds = ", ".join(map(str, seed))
        axis.set_title(
            f"{table}: blocks of {grid.size[0]} m x {grid.size[1]} m, seed {seeds}; robots start on the left"
        )
        axis.set_ylabel("y [m]")
        if table == "training":
            middle = np.concatenate([block[block.shape[0] // 2, :-1] for block in blocks[0]])
            axes[2].fill_between(np.arange(len(middle)) * 0.025, 100.0 * middle, color="0.6")
    axes[2].set(xlabel="x [m]", ylabel="height [cm]", xlim=(0, LENGTH), title="training, along the middle of a track")
    figure.savefig(path, dpi=56)


def draw_portrait(task: str, path: Path, overrides: Sequence[str] = ()) -> None:
    """Let the robot of a task stand on its default pose and write a picture of it."""
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.evaluation.conditions import disable_training_randomization, set_healthy
    from umc.mdp import fault_state
    from umc.rendering.camera import CAMERA, FollowCamera, camera_cfg
    from umc.rendering.writers import write_png
    from umc.tasks.registry import checked_task
    from umc.training.task_cfg import resolve_cfgs

    torch.set_num_threads(1)
    env_cfg, _ = resolve_cfgs(checked_task(task), None, list(overrides))
    env_cfg.sim.device = "cpu"
    disable_training_randomization(env_cfg, (0.0, 0.0, 0.0), 1, SETTLED, seed=1)
    set_healthy(env_cfg)
    for name, term in vars(env_cfg.terminations).items():
        if hasattr(term, "func"):
            setattr(env_cfg.terminations, name, None)
    env_cfg.events.reset_joints.params["position_range"] = (1.0, 1.0)
    env_cfg.events.reset_base.params.update(pose_range={}, velocity_range={})
    setattr(env_cfg.scene, CAMERA, camera_cfg(PORTRAIT_SIZE, PORTRAIT_SIZE))
    env = ManagerBasedRLEnv(env_cfg)
    env.reset()
    camera = FollowCamera(env, fault_state(env), "front")
    for _ in range(SETTLED):
        env.step(torch.zeros(1, env.action_manager.total_action_dim))
        camera.follow()
        frame = camera.render()
    left, upper, right, lower = PORTRAIT_CROP
    write_png(path, frame[upper:lower, left:right])


def write_strip(argv: Sequence[str]) -> int:
    """Film a walk and writes its strip."""
    from umc.evaluation.session import prepare
    from umc.rendering.film import film_takes, robot_title
    from umc.rendering.film_cfg import HEALTHY, FilmCfg
    from umc.rendering.writers import write_png
    from umc.training.command_line import add_policy_arguments, asks_for_help, parse, show_help
    from umc.utils.console import quiet

    if asks_for_help(argv):
        about = "Show the walk of a healthy robot in a row of stills."
        return show_help(argv, "strip", about, [], [add_policy_arguments, _strip_arguments])
    with quiet():
        options, overrides = parse(argv, _strip_arguments)
        if options.out is None or options.out.suffix.lower() != ".png":
            raise UmcError("--out must name a .png file")
        if len(options.checkpoint or ()) > 1:
            raise UmcError("one walk is shown; give one --checkpoint")
        if options.begin <= 0 or options.apart <= 0 or options.stills < 2:
            raise UmcError("--begin and --apart must be above 0 s, --stills at least 2")
        session = prepare(options, overrides, stage=1)
    options.names, options.num_envs = None, 1
    step_dt = session.env_cfg.sim.dt * session.env_cfg.decimation
    apart, first = max(round(options.apart / step_dt), 1), max(round(options.begin / step_dt), 1)
    steps = [first + number * apart for number in range(options.stills)]
    cfg = FilmCfg(steps=steps[-1] + 1, scenario=HEALTHY, onset=1, size=PANEL)
    protocol = cfg.protocol(session.info.robot, options.seed)
    (take,), step_dt = film_takes(session, protocol, cfg, frozenset(steps))
    info = session.info
    title = f"{robot_title(session)}, {info.model}, stage {info.stage}, iteration {info.iteration}"
    if take.ended is not None:
        print(f"the robot fell at {take.ended * step_dt:.1f} s")
    write_png(options.out, strip(take, title, step_dt))
    print(f"picture: {options.out}", flush=True)
    return 0


def _strip_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--begin", type=float, default=BEGIN, help=f"time of the first still [s]; {BEGIN} without it")
    add("--apart", type=float, default=APART, help=f"time between two stills [s]; {APART} without it")
    add("--stills", type=int, default=STILLS, help=f"how many; {STILLS} without it")


def strip(take: Take, title: str, step_dt: float) -> Frame:
    """Put stills in a row."""
    height, width = take.frames[0].shape[:2]
    cut = round(width * (1.0 - KEPT) / 2)
    stills = [frame[:, cut : width - cut] for frame in take.frames]
    wide = stills[0].shape[1]
    line = round(1.6 * LETTERS)
    page = Image.new("RGB", (len(stills) * (wide + GAP) - GAP, 2 * line + height), PAPER)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(LETTERS)
    ends = take.moments[0], take.moments[-1]
    seconds = (ends[1].step - ends[0].step) * step_dt
    speed = (ends[1].distance - ends[0].distance) / seconds
    words = f"{title}: {speed:.2f} m/s over these {seconds:.1f} s"
    draw.text((MARGIN, line / 2), words, fill=INK, font=font, anchor="lm")
    for number, (still, moment) in enumerate(zip(stills, take.moments, strict=True)):
        left = number * (wide + GAP)
        page.paste(Image.fromarray(np.ascontiguousarray(still)), (left, line))
        place = (left + MARGIN, line + height + line / 2)
        draw.text(place, f"{moment.step * step_dt:.2f} s", fill=PALE, font=font, anchor="lm")
    return np.asarray(page)


def _curves(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m tools.docs_figures curves", description="Draw the learning curves of a run.")
    parser.add_argument("run_dir", type=Path, help="folder of the run, under logs/rsl_rl/")
    parser.add_argument("--out", type=Path, help="picture to write (default: curve.png in the run's folder)")
    parser.add_argument("--title", help="headline")
    options = parser.parse_args(argv)
    out = options.out or options.run_dir / "curve.png"
    plot_run(options.run_dir, out, options.title)
    print(out)
    return 0


def _portrait(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m tools.docs_figures portrait", description="Draw a robot without a policy.")
    parser.add_argument("task", help="id of the task")
    parser.add_argument("--out", type=Path, required=True, help="PNG to write")
    options, overrides = parser.parse_known_args(argv)
    draw_portrait(options.task, options.out, overrides)
    print(f"picture: {options.out}")
    return 0


def _terrain(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m tools.docs_figures terrain", description="Draw the A1 tracks from above.")
    parser.add_argument("out", type=Path, help="PNG to write")
    draw_terrain(parser.parse_args(argv).out)
    return 0


COMMANDS = {"curves": _curves, "portrait": _portrait, "strip": write_strip, "terrain": _terrain}


def main(argv: Sequence[str]) -> int:
    """Draw the picture that the command line asks for; return the exit status."""

    def work(arguments: list[str]) -> int:
        form = argparse.RawDescriptionHelpFormatter
        parser = Parser(prog="python -m tools.docs_figures", description=__doc__, formatter_class=form)
        parser.add_argument("picture", choices=COMMANDS)
        return COMMANDS[parser.parse_args(arguments[:1]).picture](arguments[1:])

    return run_main(work, argv)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # the teardown of an engine may hang
