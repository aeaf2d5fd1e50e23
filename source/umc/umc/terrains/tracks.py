# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Tracks of rough blocks side by side, as many and as long as the robots need; and how high the ground is anywhere."""

import math

import numpy as np
import torch
import torch.nn.functional as functional
from isaaclab.terrains import TerrainGenerator, TerrainGeneratorCfg, TerrainImporter, TerrainImporterCfg
from isaaclab.utils import configclass

from umc.terrains.contacts import apply_ground_friction_to_height_fields, use_newton_contacts
from umc.terrains.ground import FLAT_GROUND_CFG, GROUND_MATERIAL
from umc.terrains.perlin import PerlinTrackCfg, perlin_heights

ROWS, COLUMNS = 20, 50
"""Blocks of a track and tracks in A1-Walk (BodyTransformer's fork of ParkourGym)."""

LARGEST_GRID = 4096
"""Most grid steps along either axis, border included: beyond it Newton makes its height field coarser."""

UNDER_ROBOT = 0.4
"""Side of the square whose mean height is the ground under a robot [m], about a leg to either side of A1."""

COARSE = 4
"""Grid steps between two places at which that mean is kept."""


@configclass
class TrackGeneratorCfg(TerrainGeneratorCfg):
    """Rows of blocks along x make a track; columns are the tracks."""

    class_type: type | str = "{DIR}.tracks:TrackGenerator"
    num_rows: int = ROWS
    num_cols: int = COLUMNS
    border_width: float = 8.0
    """Flat ground around the tracks [m]."""
    seed: int = 1
    """Of the first track; without ``seeds``, of all."""
    seeds: tuple[int, ...] = ()
    """Seeds of the tracks, in turn."""

    def seed_of(self, column: int) -> int:
        """Seed of a track."""
        return self.seeds[column % len(self.seeds)] if self.seeds else self.seed

    def block(self, row: int, column: int) -> tuple[float, PerlinTrackCfg]:
        """Return difficulty, in [0, 1], and cfg of a block.

        It depends on its seed, row and column alone: fewer tracks are the first of the whole grid.
        """
        (cfg,) = self.sub_terrains.values()
        seed = self.seed_of(column)
        low, high = self.difficulty_range
        difficulty = np.random.default_rng([seed, row, column]).uniform(low, high)
        return difficulty, cfg.replace(seed=seed, size=self.size)


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


@configclass
class TrackImporterCfg(TerrainImporterCfg):
    """Tracks for as many robots as there are; each starts at the near end of its track and faces along it (+x)."""

    class_type: type | str = "{DIR}.tracks:TrackImporter"
    prim_path: str = "/World/ground"
    terrain_type: str = "generator"
    terrain_generator: TrackGeneratorCfg = TrackGeneratorCfg()
    collision_group: int = -1
    physics_material = GROUND_MATERIAL
    max_init_terrain_level: int | None = 0
    """All start in the first row (A1-Walk)."""
    robots_per_track: int = 32
    """With fewer robots than this times the tracks, fewer tracks are made."""
    reach: float = 16.0
    """Length of track that is made [m]; an episode of 20 s at 0.5 m/s is 10 m long. The border follows."""


class TrackImporter(TerrainImporter):
    """Importer of no more of the grid than robots can reach, which knows the height of the ground."""

    cfg: TrackImporterCfg

    def __init__(self, cfg: TrackImporterCfg) -> None:
        use_newton_contacts()
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


def perlin_tracks(width: float, block_length: float, border: float, seeds: int | tuple[int, ...]) -> TrackImporterCfg:
    """Return Perlin tracks of the paper's tables.

    Width, block length and border [m], and seeds that tracks have in turn.
    """
    seeds = (seeds,) if isinstance(seeds, int) else tuple(seeds)
    return TrackImporterCfg(
        terrain_generator=TrackGeneratorCfg(
            size=(block_length, width),
            border_width=border,
            seed=seeds[0],
            seeds=seeds,
            sub_terrains={"perlin": PerlinTrackCfg()},
        )
    )


def ground_name(terrain: TerrainImporterCfg) -> str:
    """Return ``"flat"`` or ``"perlin"``, as the tasks' presets are called, else the terrain's own type."""
    if isinstance(terrain, TrackImporterCfg):
        return "perlin"
    flat = terrain.terrain_type == FLAT_GROUND_CFG.terrain_type and terrain.usd_path == FLAT_GROUND_CFG.usd_path
    return "flat" if flat or terrain.terrain_type == "plane" else terrain.terrain_type
