# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A block of fractal Perlin noise, as a sub-terrain of Isaac Lab."""

import math
from collections.abc import Callable

import numpy as np
import trimesh  # loaded when it is used: umc.utils.lazy_imports
from isaaclab.terrains import SubTerrainBaseCfg
from isaaclab.utils import configclass
from numpy.typing import NDArray

from umc.utils.errors import UmcError

SKIRT = -0.05
"""Height of the lower edge of a block's sides [m]: neighbours differ in height, and no gap may open between them."""


def perlin_noise(cells: tuple[int, int], samples: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Gradient noise after Perlin (2002): a random slope in every corner of a lattice, faded into each other.

    Args:
        cells: Cells of the lattice along x and y.
        samples: Heights per cell and axis.
        random: Where the slopes come from.

    Returns:
        Noise in [0, 1], 0.5 in the corners of the lattice.
        Shape is (cells[0] * samples + 1, cells[1] * samples + 1).
    """
    angle = random.uniform(0.0, 2.0 * math.pi, (cells[0] + 1, cells[1] + 1))
    # one more cell along each axis, of which only the first line is kept: the end of the last cell
    slopes = [np.pad(slope, (0, 1), mode="edge") for slope in (np.cos(angle), np.sin(angle))]
    place = np.arange(samples) / samples
    fade = place**3 * (place * (6.0 * place - 15.0) + 10.0)
    # axes: cell along x, place in it, cell along y, place in it
    x, y = place[:, None, None], place[None, None, :]
    fade_x, fade_y = fade[:, None, None], fade[None, None, :]

    def corner(right: int, up: int) -> NDArray[np.float64]:
        along_x, along_y = (
            slope[right : right + cells[0] + 1, up : up + cells[1] + 1][:, None, :, None] for slope in slopes
        )
        return along_x * (x - right) + along_y * (y - up)

    near = corner(0, 0) * (1.0 - fade_x) + corner(1, 0) * fade_x
    far = corner(0, 1) * (1.0 - fade_x) + corner(1, 1) * fade_x
    noise = near * (1.0 - fade_y) + far * fade_y
    noise = noise.reshape((cells[0] + 1) * samples, (cells[1] + 1) * samples)
    return math.sqrt(0.5) * noise[: cells[0] * samples + 1, : cells[1] * samples + 1] + 0.5


@configclass
class PerlinTrackCfg(SubTerrainBaseCfg):
    """A block of a track: rough ground, or flat ground where the noise drawn for it is too low.

    The difficulty that the generator draws, in [0, 1], is the block's place in ``z_scale``.
    """

    function: Callable = "{DIR}.perlin:perlin_track"  # type: ignore[assignment]
    convert_to_heightfield: bool = True
    horizontal_scale: float = 0.025
    """Distance of two heights [m]."""
    vertical_scale: float = 0.005
    """Step of the heights [m]."""
    z_scale: tuple[float, float] = (0.08, 0.15)
    """Least and greatest amplitude of the first octave [m]."""
    flat_below: float = 0.1
    """A lower amplitude makes the block flat [m]."""
    frequency: float = 10.0
    """Cells of the noise's first lattice per meter [1/m]."""
    octaves: int = 2
    """Lattices that are added."""
    lacunarity: float = 2.0
    """Frequency of a lattice over that of the one before."""
    gain: float = 0.25
    """Amplitude of a lattice over that of the one before."""
    start: float = 0.5
    """Where robots start, from the block's edge [m]; half way between its sides."""
    seed: int = 0
    """Of the noise; the generator writes its own here."""


def perlin_heights(difficulty: float, cfg: PerlinTrackCfg) -> NDArray[np.float64]:
    """Return the heights [m], 0 or more, of one block on a grid over ``cfg.size``, by seed and a difficulty in [0, 1].

    Raises UmcError if the block is no whole number of cells, or a cell no whole number of grid steps.
    """
    points = tuple(_whole(length / cfg.horizontal_scale, f"size {length}", cfg) for length in cfg.size)
    heights = np.zeros((points[0] + 1, points[1] + 1))
    amplitude = (1.0 - difficulty) * cfg.z_scale[0] + difficulty * cfg.z_scale[1]
    if amplitude < cfg.flat_below:
        return heights
    random = np.random.default_rng([cfg.seed, int(difficulty * 2**53)])
    frequency = cfg.frequency
    for _ in range(cfg.octaves):
        samples = _whole(1.0 / (frequency * cfg.horizontal_scale), f"frequency {frequency}", cfg)
        cells = (
            _whole(points[0] / samples, f"size {cfg.size[0]}", cfg),
            _whole(points[1] / samples, f"size {cfg.size[1]}", cfg),
        )
        heights += amplitude * perlin_noise(cells, samples, random)
        amplitude, frequency = amplitude * cfg.gain, frequency * cfg.lacunarity
    return np.round(heights / cfg.vertical_scale) * cfg.vertical_scale


def _whole(number: float, name: str, cfg: PerlinTrackCfg) -> int:
    """Return a count that the block's figures must give exactly."""
    count = round(number)
    if count < 1 or abs(number - count) > 1e-6:
        raise UmcError(
            f"{name} of the Perlin track does not fit: a block must hold whole cells of 1/frequency m, and a cell whole"
            f" steps of {cfg.horizontal_scale} m"
        )
    return count


def perlin_track(difficulty: float, cfg: PerlinTrackCfg) -> "tuple[list[trimesh.Trimesh], NDArray[np.float64]]":
    """Return a block's mesh, from (0, 0) to ``cfg.size``, as Isaac Lab's terrain generator asks for it, and its origin.

    The mesh is closed towards neighbours of another height; robots start on the highest point within the reach of
    their feet [m].
    """
    heights = perlin_heights(difficulty, cfg)
    # one more ring of vertices, below the edges
    rows, columns = heights.shape[0] + 2, heights.shape[1] + 2
    z = np.full((rows, columns), SKIRT)
    z[1:-1, 1:-1] = heights
    x, y = (np.clip(np.arange(-1, n - 1), 0, n - 3) * cfg.horizontal_scale for n in (rows, columns))
    vertices = np.stack((np.repeat(x, columns), np.tile(y, rows), z.reshape(-1)), axis=1)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1)
    next_x, next_y, both = corner + columns, corner + 1, corner + columns + 1
    faces = np.concatenate((np.stack((corner, next_x, both), axis=1), np.stack((corner, both, next_y), axis=1)))
    mesh = trimesh.Trimesh(vertices=vertices, faces=faces, process=False)
    near = slice(0, round(2.0 * cfg.start / cfg.horizontal_scale) + 1)
    return [mesh], np.array([cfg.start, 0.5 * cfg.size[1], heights[near].max()])
