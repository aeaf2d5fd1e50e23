# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Makes tracks, as many and as long as the robots need, and says how high the ground is anywhere.

Only a simulation imports this module: Isaac Lab's importer takes a second to load.
"""

import math

import numpy as np
import torch
import torch.nn.functional as functional
from isaaclab.terrains import TerrainGenerator, TerrainImporter

from umc.terrains.contacts import apply_ground_friction_to_height_fields, use_newton_contacts
from umc.terrains.perlin import perlin_heights
from umc.terrains.tracks import TrackGeneratorCfg, TrackImporterCfg
from umc.utils.errors import UmcError

LARGEST_GRID = 4096
"""Most grid steps along either axis, border included: beyond it Newton makes its height field coarser."""

UNDER_ROBOT = 0.4
"""Side of the square whose mean height is the ground under a robot [m], about a leg to either side of A1."""

COARSE = 4
"""Grid steps between two places at which that mean is kept."""


class TrackGenerator(TerrainGenerator):
    """Isaac Lab's generator, with blocks that do not depend on how many there are."""

    cfg: TrackGeneratorCfg

    def _generate_random_terrains(self) -> None:
        to_middle = np.array([-0.5 * self.cfg.size[0], -0.5 * self.cfg.size[1], 0.0])  # as _add_sub_terrain expects it
        for row, column in np.ndindex(self.cfg.num_rows, self.cfg.num_cols):
            difficulty, cfg = self.cfg.block(row, column)
            (mesh,), origin = cfg.function(difficulty, cfg)
            mesh.vertices += to_middle
            self._add_sub_terrain(mesh, origin + to_middle, row, column, cfg)


class TrackImporter(TerrainImporter):
    """Importer of no more of the grid than robots can reach, which knows the height of the ground."""

    cfg: TrackImporterCfg

    def __init__(self, cfg: TrackImporterCfg) -> None:
        use_newton_contacts(cfg.num_envs)
        apply_ground_friction_to_height_fields()
        grid = needed_grid(cfg)
        super().__init__(cfg.replace(terrain_generator=grid))
        ground, self._corner = coarse_ground(grid)
        self._ground = ground.to(self.device)
        self._step = COARSE * grid.block(0, 0)[1].horizontal_scale

    def place(self, columns: torch.Tensor) -> None:
        """Assign a track to every env, shape (num_envs,), from its next reset on."""
        assert self.terrain_origins is not None  # there always are some with a generator
        self.terrain_types[:] = columns
        self.env_origins[:] = self.terrain_origins[self.terrain_levels, self.terrain_types]

    def height_at(self, position: torch.Tensor) -> torch.Tensor:
        """Return the mean height [m] of the ground around places in the world [m], shape (..., 2 or more).

        0 on the border and beyond.
        """
        x, y = (((position[..., axis] - self._corner[axis]) / self._step).round().long() for axis in (0, 1))
        rows, columns = self._ground.shape
        inside = (x >= 0) & (x < rows) & (y >= 0) & (y < columns)
        return torch.where(inside, self._ground[x.clamp(0, rows - 1), y.clamp(0, columns - 1)], 0.0)


def needed_grid(cfg: TrackImporterCfg) -> TrackGeneratorCfg:
    """Cut the grid down to what robots can reach and engines can keep at full resolution.

    It gets its blocks' grid step: Newton's height field takes over the generator's, and Isaac Lab's default of 0.1 m
    samples the noise only where it is the same.
    """
    grid = cfg.terrain_generator
    scale = grid.block(0, 0)[1].horizontal_scale
    most = [int((LARGEST_GRID * scale - 2.0 * grid.border_width) / length) for length in grid.size]
    rows = min(grid.num_rows, math.ceil(cfg.reach / grid.size[0]), most[0])
    columns = max(math.ceil(cfg.num_envs / cfg.robots_per_track), len(grid.seeds), 1)
    columns = min(grid.num_cols, columns, most[1])
    if min(rows, columns) < 1:
        raise UmcError(
            f"a border of {grid.border_width:g} m leaves no room for tracks of {grid.size[0]:g} x {grid.size[1]:g} m on"
            f" {LARGEST_GRID * scale:g} m, the most that engines keep at full resolution; lower border_width or size"
        )
    return grid.replace(num_rows=rows, num_cols=columns, horizontal_scale=scale)


def coarse_ground(grid: TrackGeneratorCfg) -> tuple[torch.Tensor, tuple[float, float]]:
    """Return mean heights [m] every :data:`COARSE` grid steps of a grid, and the first one's place [m]."""
    # each block gives away its last line, which is the next one's first
    blocks = [
        [perlin_heights(*grid.block(row, column))[:-1, :-1] for column in range(grid.num_cols)]
        for row in range(grid.num_rows)
    ]
    heights = torch.from_numpy(np.block(blocks)).float()
    reach = round(0.5 * UNDER_ROBOT / grid.block(0, 0)[1].horizontal_scale)
    mean = functional.avg_pool2d(heights[None], 2 * reach + 1, COARSE, reach, count_include_pad=False)[0]
    return mean, (-0.5 * grid.size[0] * grid.num_rows, -0.5 * grid.size[1] * grid.num_cols)
