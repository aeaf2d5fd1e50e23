# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Configs of tracks of rough blocks side by side; :mod:`umc.terrains.track_importer` makes the tracks."""

from typing import Any

import numpy as np
from isaaclab.terrains import TerrainGeneratorCfg, TerrainImporterCfg
from isaaclab.utils import configclass

from umc.terrains.ground import FLAT_GROUND_CFG, GROUND_MATERIAL
from umc.terrains.perlin import PerlinTrackCfg

ROWS, COLUMNS = 20, 50
"""Blocks of a track and tracks in A1-Walk (BodyTransformer's fork of ParkourGym)."""


@configclass
class TrackGeneratorCfg(TerrainGeneratorCfg):
    """Rows of blocks along x make a track; columns are the tracks."""

    class_type: type | str = "{DIR}.track_importer:TrackGenerator"
    num_rows: int = ROWS
    num_cols: int = COLUMNS
    border_width: float = 8.0
    """Flat ground around the tracks [m]."""
    seed: int = 1
    """Of all tracks, where ``seeds`` names none."""
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


@configclass
class TrackImporterCfg(TerrainImporterCfg):
    """Tracks for as many robots as there are; each starts at the near end of its track and faces along it (+x)."""

    class_type: type | str = "{DIR}.track_importer:TrackImporter"
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
            seeds=seeds if len(seeds) > 1 else (),
            sub_terrains={"perlin": PerlinTrackCfg()},
        )
    )


def tracks_in(scene: Any) -> Any:
    """Return the :class:`~umc.terrains.track_importer.TrackImporter` of a scene, or None."""
    return scene.terrain if isinstance(getattr(scene.terrain, "cfg", None), TrackImporterCfg) else None


def ground_name(terrain: TerrainImporterCfg) -> str:
    """Return ``"flat"`` or ``"perlin"``, as the tasks' presets are called, else the terrain's own type."""
    if isinstance(terrain, TrackImporterCfg):
        return "perlin"
    flat = terrain.terrain_type == FLAT_GROUND_CFG.terrain_type and terrain.usd_path == FLAT_GROUND_CFG.usd_path
    return "flat" if flat or terrain.terrain_type == "plane" else terrain.terrain_type
