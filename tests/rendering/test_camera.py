# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Colors of faulty joints on the shapes of a Newton model."""

from types import SimpleNamespace

import newton
import numpy as np
import torch
import warp as wp
from umc.faults import FaultSchedule, FaultState, find_kind
from umc.rendering.camera import GROUND_COLOR, TOLERANCE, FaultPainter, is_ground, smooth_meshes, vertex_normals
from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR
from umc.robots.g1 import G1_JOINTS
from umc.robots.spawn import DATA

CROSS, FOOT, KNEE = ("left_ankle_pitch_link", "left_ankle_roll_link", "left_knee_link")


def g1_model():
    """A Newton model of G1."""
    builder = newton.ModelBuilder()
    builder.add_usd(str(DATA / "g1.usda"))
    world = newton.ModelBuilder()
    world.add_world(builder)
    return world.finalize(device="cpu")


def painted(faults):
    """Links of G1 with a shape of another color than before, after ``{joint: kind}`` faults; all colors by link."""
    model = g1_model()
    kinds = [find_kind(name) for name in ("effort", "dead", "delayed", "imu_dead")]
    live = torch.tensor([[[faults.get(name) == kind.name for name in G1_JOINTS] for kind in kinds]])
    state = SimpleNamespace(joint_names=G1_JOINTS, live=live, kinds=kinds)
    before = wp.to_torch(model.shape_color).clone()
    FaultPainter(model, state).paint()
    after = wp.to_torch(model.shape_color)
    rows = (before != after).any(dim=1).nonzero().squeeze(1).tolist()
    bodies = model.shape_body.numpy()
    return {model.body_label[bodies[row]].rpartition("/")[2]: tuple(after[row].tolist()) for row in rows}, model


def test_a_second_film_of_a_simulation_begins_with_healthy_colors_and_tints_at_the_onset():
    """The model keeps the colors of the last picture: a camera that is made anew must not take them for healthy."""
    model = g1_model()
    healthy = wp.to_torch(model.shape_color).clone()
    source = FaultSchedule(G1_JOINTS, scenario="effort", severity={"effort": 5.0}, num_joints=(1, 1), onset=3)
    for _ in range(2):
        state = FaultState(source, 1)
        painter = FaultPainter(model, state)
        state.reset(torch.arange(1))
        tinted = []
        for step in range(6):
            state.advance(torch.tensor([step]), torch.zeros(1, len(G1_JOINTS)))
            painter.paint()
            tinted.append(not torch.equal(wp.to_torch(model.shape_color), healthy))
        assert tinted == [False] * 3 + [True] * 3


def rounded(color):
    return tuple(torch.tensor(color).tolist())


def test_a_fault_between_the_joints_of_an_ankle_is_seen_on_the_foot_and_red_wins():
    faults = {"left_ankle_pitch_joint": "effort", "left_ankle_roll_joint": "dead", "left_knee_joint": "dead"}
    others = {"right_ankle_pitch_joint": "delayed", "right_ankle_roll_joint": "dead", "right_knee_joint": "delayed"}
    others |= {"right_hip_yaw_joint": "imu_dead"}  # the IMU's is no joint's
    links, model = painted(faults | others)
    right = {CROSS: COMMAND_COLOR, FOOT: SENSOR_COLOR, KNEE: COMMAND_COLOR}
    right = {name.replace("left", "right"): rounded(color) for name, color in right.items()}
    assert links == {CROSS: rounded(FAULT_COLOR), FOOT: rounded(FAULT_COLOR), KNEE: rounded(SENSOR_COLOR)} | right
    smooth_meshes(model)
    meshes = [mesh for mesh in model.shape_source if isinstance(mesh, newton.Mesh)]
    assert meshes
    assert all(len(mesh.normals) == len(mesh.vertices) for mesh in meshes)


def test_normals_are_weighted_by_area_and_have_length_one():
    points = torch.tensor([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 1.0]]).numpy()
    triangles = torch.tensor([[0, 1, 2], [0, 3, 1]]).numpy()
    normals = torch.from_numpy(vertex_normals(points, triangles))
    torch.testing.assert_close(normals.norm(dim=1), torch.ones(4))
    torch.testing.assert_close(normals[2], torch.tensor([0.0, 0.0, 1.0]))
    assert normals[0, 2] > normals[0, 1] > 0  # the larger triangle counts more


def test_the_grounds_color_is_found_with_its_tolerance():
    own = np.round(255 * np.array(GROUND_COLOR)).astype(int)
    shifts = np.array([0, TOLERANCE, -TOLERANCE, TOLERANCE + 1, -TOLERANCE - 1, -own[0]])
    albedo = np.tile(np.append(own, 255), (3, len(shifts), 1))
    for channel in range(3):
        albedo[channel, :, channel] += shifts
    assert is_ground(albedo.astype(np.uint8)).tolist() == [[True] * 3 + [False] * 3] * 3
