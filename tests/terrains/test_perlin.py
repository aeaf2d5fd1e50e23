# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The Perlin tracks: seeded, shaped by the paper's figures, and the same ground on both engines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from umc.faults import paper_settings
from umc.terrains import PerlinTrackCfg, perlin_heights, perlin_noise, perlin_tracks
from umc.terrains.perlin import SKIRT, perlin_track
from umc.terrains.track_importer import TrackGenerator, coarse_ground, needed_grid
from umc.utils.errors import UmcError

TRAINING = paper_settings("a1", "training")
BALL = 0.02
"""Radius of A1's feet [m]."""

STEP = 0.025
"""Distance of two heights [m]."""

BLOCK = (TRAINING["track_block_length"], TRAINING["track_width"])


def tracks(num_envs=64, table="training", **changes):
    rows = paper_settings("a1", table)
    seeds = rows["perlin_seed"]
    cfg = perlin_tracks(rows["track_width"], rows["track_block_length"], rows["border_size"], seeds)
    cfg.num_envs = num_envs
    for name, value in changes.items():
        setattr(cfg, name, value)
    return cfg


def test_noise_is_gradient_noise_as_perlin_defined_it():
    """Compared with the definition, written out for single points."""
    noise = perlin_noise((3, 2), 4, np.random.default_rng(5))
    angle = np.random.default_rng(5).uniform(0.0, 2.0 * np.pi, (4, 3))

    def at(x, y):
        i, j = min(int(x), 2), min(int(y), 1)
        u, v = x - i, y - j
        fade = [6 * t**5 - 15 * t**4 + 10 * t**3 for t in (u, v)]
        total = 0.0
        for a in (0, 1):
            for b in (0, 1):
                slope = np.cos(angle[i + a, j + b]) * (u - a) + np.sin(angle[i + a, j + b]) * (v - b)
                total += slope * (fade[0] if a else 1 - fade[0]) * (fade[1] if b else 1 - fade[1])
        return np.sqrt(2.0) * total * 0.5 + 0.5

    expected = [[at(i / 4, j / 4) for j in range(9)] for i in range(13)]
    assert noise == pytest.approx(np.array(expected), abs=1e-12)
    assert 0.0 <= noise.min() < 0.35 < 0.65 < noise.max() <= 1.0


def test_a_block_has_the_papers_size_and_the_public_tasks_heights():
    cfg = PerlinTrackCfg(size=BLOCK, seed=1)
    heights = perlin_heights(1.0, cfg)
    assert heights.shape == (81, 65)  # 2.0 x 1.6 m, a height every 0.025 m
    assert heights / 0.005 == pytest.approx(np.round(heights / 0.005))
    # two octaves around one half: 0.5 * 0.15 * (1 + 0.25) m
    assert heights.mean() == pytest.approx(0.09375, abs=0.01)
    assert heights.min() >= 0.0
    assert heights.max() <= 0.15 * 1.25
    # U(0.08, 0.15) below 0.1 is flat: 2 of 7 blocks
    assert perlin_heights(2.0 / 7.0 - 1e-9, cfg).max() == 0.0
    assert perlin_heights(2.0 / 7.0 + 1e-9, cfg).max() > 0.05


def test_a_block_is_drawn_from_its_seed_and_place_alone():
    few, many = tracks().terrain_generator, tracks(num_envs=7400).terrain_generator
    assert few.block(3, 1)[0] == many.block(3, 1)[0]
    assert len({many.block(row, column)[0] for row in range(20) for column in range(50)}) == 1000
    block = many.block(3, 1)
    assert np.array_equal(perlin_heights(*block), perlin_heights(*many.block(3, 1)))
    other = tracks(table="inference").terrain_generator
    assert [other.seed_of(column) for column in range(4)] == [100, 25, 75, 100]
    assert block[0] != other.block(3, 1)[0]


@pytest.mark.parametrize(
    ("table", "envs", "reach", "grid"),
    [
        ("training", 64, 16.0, (8, 2)),
        ("training", 7400, 16.0, (8, 50)),
        ("training", 7400, 40.0, (20, 50)),
        ("inference", 64, 16.0, (3, 3)),  # a track for each seed
        ("inference", 4000, 16.0, (3, 15)),  # more would make Newton's height field coarser
    ],
)
def test_no_more_ground_than_robots_need_and_engines_can_hold(table, envs, reach, grid):
    found = needed_grid(tracks(envs, table, reach=reach))
    assert (found.num_rows, found.num_cols) == grid
    extent = [n * length + 2 * found.border_width for n, length in zip(grid, found.size, strict=True)]
    assert max(extent) / 0.025 <= 4096


def test_a_border_that_leaves_no_room_for_tracks_is_refused():
    cfg = tracks()
    cfg.terrain_generator.border_width = 60.0
    with pytest.raises(UmcError, match="a border of 60 m leaves no room for tracks"):
        needed_grid(cfg)


def test_the_mesh_is_the_heights_and_has_no_gap_between_blocks():
    grid = needed_grid(tracks(reach=4.0))
    generator = TrackGenerator(grid, "cpu")
    mesh = generator.terrain_mesh
    assert mesh.bounds[:, :2] == pytest.approx(np.array([[-10.0, -9.6], [10.0, 9.6]]))  # border of 8 m
    x, y = -2.0 + 0.5125, -1.6 + 0.7125  # between two points of the first block's grid
    heights = perlin_heights(*grid.block(0, 0))
    near = heights[20:22, 28:30]
    hits, *_ = mesh.ray.intersects_location([[x, y, 1.0]], [[0.0, 0.0, -1.0]])
    assert near.min() - 1e-6 <= hits[:, 2].max() <= near.max() + 1e-6
    assert generator.terrain_origins[0, 0].tolist() == pytest.approx([-1.5, -0.8, heights[:41].max()])
    # a block is open only below the ground, so that a step between neighbours has a side
    (block,), _ = perlin_track(*grid.block(0, 0))
    _, first, count = np.unique(block.edges_sorted, axis=0, return_index=True, return_counts=True)
    rim = block.vertices[block.edges_sorted[first[count == 1]]]
    assert set(rim[..., 2].reshape(-1)) == {SKIRT}


def test_ground_under_a_robot_is_the_mean_around_it():
    grid = needed_grid(tracks(reach=4.0))
    ground, corner = coarse_ground(grid)
    assert ground.shape == (40, 32)
    heights = np.block([[perlin_heights(*grid.block(r, c))[:-1, :-1] for c in (0, 1)] for r in (0, 1)])
    row, column = 13, 9
    around = heights[4 * row - 8 : 4 * row + 9, 4 * column - 8 : 4 * column + 9]
    assert float(ground[row, column]) == pytest.approx(around.mean(), abs=1e-6)
    assert corner == (-2.0, -1.6)


def test_a_block_that_does_not_fit_the_lattice_is_one_clear_error():
    with pytest.raises(UmcError, match=r"size 1\.61 of the Perlin track does not fit"):
        perlin_heights(1.0, PerlinTrackCfg(size=(2.0, 1.61)))
    with pytest.raises(UmcError, match=r"frequency 15\.0 of the Perlin track does not fit"):
        perlin_heights(1.0, PerlinTrackCfg(size=BLOCK, frequency=15.0))


def balls_on_a_track(physics: str) -> dict:
    """Balls as big as feet fall on the first block of a track and come to rest; what the importer says of it."""
    import isaaclab.sim as sim_utils
    import umc.utils.patches
    from isaaclab.assets import RigidObjectCfg
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg, build_simulation_context
    from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg
    from isaaclab_ov.physics import OvPhysxCfg
    from umc.terrains import perlin_tracks

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    cfg = InteractiveSceneCfg(num_envs=16, env_spacing=2.0)
    cfg.terrain = perlin_tracks(1.6, 2.0, 1.0, 1)
    cfg.terrain.reach = 4.0
    cfg.ball = RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/Ball",
        spawn=sim_utils.SphereCfg(
            radius=BALL,
            rigid_props=sim_utils.RigidBodyPropertiesCfg(),
            mass_props=sim_utils.MassPropertiesCfg(mass=0.5),
            collision_props=sim_utils.CollisionPropertiesCfg(),
        ),
    )
    engines = {"newton_mjwarp": NewtonCfg(solver_cfg=MJWarpSolverCfg(njmax=100, nconmax=40)), "ovphysx": OvPhysxCfg()}
    with build_simulation_context(sim_cfg=SimulationCfg(dt=0.005, physics=engines[physics], device="cpu")) as sim:
        scene = InteractiveScene(cfg)
        sim.reset()
        scene.reset()
        ball, terrain = scene["ball"], scene.terrain
        where = terrain.env_origins[:, :2] + torch.linspace(-0.4, 0.4, 16)[:, None] * torch.tensor([1.0, -1.2])
        pose = torch.cat((where, torch.full((16, 1), 0.25), torch.tensor([[0.0, 0.0, 0.0, 1.0]]).repeat(16, 1)), dim=1)
        ball.write_root_pose_to_sim_index(root_pose=pose)
        for _ in range(160):
            scene.write_data_to_sim()
            sim.step(render=False)
            scene.update(0.005)
        return {
            "place": ball.data.root_pos_w.torch.tolist(),
            "ground": terrain.height_at(ball.data.root_pos_w.torch).tolist(),
            "origin": terrain.env_origins[0].tolist(),
            "beyond": terrain.height_at(torch.tensor([[50.0, 0.0]])).tolist(),
        }


@pytest.mark.engine
@pytest.mark.parametrize("physics", ["newton_mjwarp", "ovphysx"])
def test_both_engines_collide_with_the_same_ground(run_engine, physics):
    said = run_engine(balls_on_a_track, physics=physics)
    place, ground = np.array(said["place"]), np.array(said["ground"])
    there = (np.abs(place[:, 1]) < 0.75) & (np.abs(place[:, 0] + 1.0) < 0.95)
    assert there.sum() >= 14  # one or two may roll off the track
    place, ground = place[there], ground[there]
    heights = perlin_heights(*perlin_tracks(1.6, 2.0, 1.0, 1).terrain_generator.block(0, 0))
    x, y = (first + STEP * np.arange(count) for first, count in zip((-2.0, -0.8), heights.shape, strict=True))
    points = np.stack((*np.meshgrid(x, y, indexing="ij"), heights), axis=-1).reshape(-1, 3)
    away = np.linalg.norm(place[:, None, :2] - points[:, :2], axis=2)
    # no ball is in the ground: its centre is a radius away from every point of it ...
    depth = BALL - np.linalg.norm(place[:, None] - points, axis=2).min(axis=1)
    assert depth.max() < 0.002
    # ... and none hangs above it
    highest = np.where(away < BALL + STEP, points[:, 2], -np.inf).max(axis=1)
    assert (place[:, 2] - BALL - highest).max() < 0.002
    assert np.ptp(place[:, 2]) > 0.02  # the ground is rough
    over = place[:, 2] - ground  # what the robots' heights count from
    assert over.min() > -0.03
    assert over.max() < 0.05
    assert said["origin"][:2] == pytest.approx([-1.5, 0.0])
    assert said["beyond"] == [0.0]
