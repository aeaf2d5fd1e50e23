# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Learning curves of a run as a picture: ``python -m tools.curves RUN_DIR --out curve.png``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from umc.utils.errors import UmcError

PANELS = (
    ("Train/mean_reward", "reward of an episode"),
    ("Train/mean_episode_length", "length of an episode [steps]"),
    ("Policy/mean_std", "action noise (std)"),
)
"""TensorBoard tags that rsl_rl writes, and what a reader calls them."""


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


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Draw the learning curve of a run.")
    parser.add_argument("run_dir", type=Path, help="folder of the run, under logs/rsl_rl/")
    parser.add_argument("--out", type=Path, help="picture to write (default: curve.png in the run's folder)")
    parser.add_argument("--title", help="headline")
    args = parser.parse_args()
    out = args.out or args.run_dir / "curve.png"
    try:
        plot_run(args.run_dir, out, args.title)
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
