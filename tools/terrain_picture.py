# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A picture of the A1 tracks: ``python -m tools.terrain_picture docs/images/perlin_track.png``."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LightSource
from umc.faults import paper_settings
from umc.terrains.perlin import perlin_heights
from umc.terrains.tracks import perlin_tracks

LENGTH, WIDTH = 12.0, 6.4
"""Part of the tracks that is drawn [m]."""


def draw(path: Path) -> None:
    """Draw the first blocks of the training and of the inference tracks from above, and heights along a track."""
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


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
