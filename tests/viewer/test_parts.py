# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the live viewer without a simulator: table, numbers, attention map, flags, and the patched visualizer."""

import argparse
import importlib.util
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import newton
import numpy as np
import pytest
import torch
from recorded_ledger import JOINTS as A1_JOINTS
from umc.mdp import JointRow, SeverityRange
from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR, rgb
from umc.rendering.film_cfg import FilmCfg
from umc.utils.errors import UmcError
from umc.viewer import live
from umc.viewer.attention_map import CELL, DARK, AttentionMap
from umc.viewer.panel import slider_range, table
from umc.viewer.patches import patch_viser_visualizer
from umc.viewer.plots import CHARTS, SECONDS, History, latest_numbers
from umc.viewer.scene import Scene

JOINTS = ("FL_hip_joint", "FL_calf_joint", "FR_hip_joint")


def css(color: tuple[float, float, float]) -> str:
    return "color:rgb({}, {}, {})".format(*rgb(color))


def test_a_protocol_without_the_papers_severities_gets_them_for_the_buttons_of_the_page():
    protocol = live.live_protocol(FilmCfg(file="real_world", scenario=2), "a1", None, A1_JOINTS)
    assert protocol.scenarios == (1, 2, 3, 4, 5, 6, 7, 8)
    assert protocol.severity["braking"] == 1.6
    assert "rom" in protocol.severity
    with pytest.raises(UmcError, match="braking"):
        live.live_protocol(FilmCfg(scenario="braking"), "a1", None, A1_JOINTS)


def test_the_table_shows_faults_in_the_colors_of_the_links():
    rows = [
        JointRow(JOINTS[0], (), (), "", False, None, "FL_hip"),
        JointRow(JOINTS[1], ("rom", "dead"), (0.3, 0.0), "0.3, <b>", True, 1.5, "FL_calf"),
        JointRow(JOINTS[2], ("bias",), (0.1,), "0.1 rad", False, 0.02, "FR_hip"),
    ]
    html = table(rows, selected=JOINTS[2])
    healthy, broken, misread = html.split("<tr data-joint=")[1:]
    assert css(FAULT_COLOR) in broken
    assert css(SENSOR_COLOR) in misread
    assert "color:inherit" in healthy
    assert "<td>rom, dead</td><td>0.3, &lt;b&gt;</td><td>yes</td><td>1.50 s</td>" in broken  # no HTML of others
    assert "<td>healthy</td>" in healthy
    assert ["font-weight:bold" in row for row in (healthy, broken, misread)] == [False, False, True]


def test_the_table_shows_what_a_detector_suspects():
    rows = [
        JointRow(JOINTS[0], (), (), "", False, None, "FL_hip", (0.02, 0.4)),
        JointRow(JOINTS[1], ("dead",), (0.0,), "", True, 1.5, "FL_calf", (0.99, 0.0)),
    ]
    html = table(rows, selected=JOINTS[0])
    assert "<th>P(sensor)</th><th>P(joint)</th>" in html
    assert "<td>2%</td><td>40%</td>" in html
    assert "<td>99%</td><td>0%</td>" in html
    unwatched = table([JointRow(JOINTS[0], (), (), "", False, None, "FL_hip")], selected=JOINTS[0])
    assert "P(sensor)" not in unwatched


def test_a_history_keeps_the_last_seconds_of_all_joints():
    history = History(step_dt=0.02)
    length = round(SECONDS / 0.02)
    for step in range(length + 40):
        values = np.full((len(CHARTS), 3, 3), float(step))
        values[1, 2] = np.inf  # no speed limit
        values[..., 1] *= 10
        history.add(0.02 * step, values)
    position, speed, torque = history.of(1)
    assert len(position[0]) == length
    assert np.allclose(position[0], 0.02 * np.arange(40, length + 40))
    assert np.array_equal(position[1], 10.0 * np.arange(40, length + 40))
    assert np.isnan(speed[3]).all()
    assert torque[3][-1] == 10.0 * (length + 39)
    assert "<td>torque [N*m]</td>" in latest_numbers([position, speed, torque])
    history.clear()
    assert [len(curve[0]) for curve in history.of(0)] == [0, 0, 0]
    assert "torque" not in latest_numbers(history.of(0))


def test_an_attention_picture_is_dark_for_large_shares_and_white_for_none():
    shares = np.zeros((4, 4))
    shares[2, 1], shares[0, 3], shares[3, 3] = 0.5, 0.25, 0.125
    drawing = AttentionMap(JOINTS)
    living, dead = (drawing.draw(shares, [False, is_dead, False]) for is_dead in (False, True))
    margin = len(living) - 4 * CELL

    def cell(row: int, column: int) -> list[int]:
        return living[margin + CELL * row + CELL // 2, margin + CELL * column + CELL // 2].tolist()

    assert cell(2, 1) == list(DARK)
    assert cell(0, 0) == [255, 255, 255]
    assert DARK[0] < cell(0, 3)[0] < cell(3, 3)[0] < 255
    changed = (living != dead).any(-1)
    assert changed[margin + CELL : margin + 2 * CELL, :margin].any()  # its row's label is red
    assert changed[:margin, margin + CELL : margin + 2 * CELL].any()  # and its column's
    assert not changed[margin:, margin:].any()


@pytest.mark.parametrize(
    ("span", "offered"),
    [
        ((0.25, 25.0, 8.0, "N*m"), (0.3, 25.0, 0.1, 8.0)),
        ((0.01, 1.0, 0.3, "of the motor"), (0.01, 1.0, 0.001, 0.3)),
        ((-0.5, 0.5, 0.3, "rad"), (-0.5, 0.5, 0.01, 0.3)),
        ((0.05 * 33.5, 33.5, 0.3 * 33.5, "N*m"), (1.7, 33.5, 0.1, 10.0)),
        ((1.0, 10.0, 5.0, "env steps"), (1.0, 10.0, 1.0, 5.0)),
        ((0.0, 700.0, 699.9, "rad/s"), (0.0, 700.0, 1.0, 700.0)),
    ],
)
def test_a_slider_offers_round_numbers_within_the_span(span, offered):
    assert slider_range(SeverityRange(*span)) == offered


def options(**flags) -> argparse.Namespace:
    given = {"visualizer": ["viser"], "port": None, "host": None, "ledger": None}
    return argparse.Namespace(**{**given, **flags})


def test_flags_of_the_page_need_the_page_and_viser(monkeypatch):
    assert live.is_live(options(port=8080))
    assert not live.is_live(options(visualizer=None))
    for name, value in (("port", 8080), ("host", "0.0.0.0"), ("ledger", "a.jsonl")):
        with pytest.raises(UmcError, match=f"--{name} needs --viz viser"):
            live.is_live(options(visualizer=["rerun"], **{name: value}))
    with pytest.raises(UmcError, match="--port is 70000"):
        live.is_live(options(port=70000))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UmcError, match="pip install 'viser"):
        live.is_live(options())


def test_the_steps_of_the_viewer_go_on_after_a_scenarios_button(monkeypatch):
    seen, panel = [], MagicMock(scenario=None, follows=False, env_id=0)

    def stepped(env, actor, obs, steps):
        for number in range(1, steps + 1):
            seen.append(number)
            panel.scenario = 6 if len(seen) == 3 else panel.scenario
            yield SimpleNamespace(number=number, fell=torch.zeros(1, dtype=torch.bool))

    monkeypatch.setattr("umc.evaluation.rollout.step_policy", stepped)
    monkeypatch.setattr("umc.viewer.panel.Panel", lambda *_: panel)
    monkeypatch.setattr(live, "_fallen", lambda _: torch.zeros(1, dtype=torch.bool))
    for place in ("umc.viewer.scene.Scene", "umc.mdp.FaultInjector", "umc.mdp.fault_state"):
        monkeypatch.setattr(place, MagicMock())
    for name in ("MessageGuard", "title"):
        monkeypatch.setattr(live, name, MagicMock())
    episodes = MagicMock(protocol=SimpleNamespace(steps=8))
    live._play(MagicMock(step_dt=0.0), None, episodes, MagicMock(), endless=False)
    assert seen == [1, 2, 3, 1, 2, 3, 4, 5]
    episodes.start.assert_called_once_with(6)


def test_the_floor_lies_on_the_ground_plane_or_just_below_other_ground():
    from umc.viewer.scene import BELOW, floor_height

    builder = newton.ModelBuilder()
    builder.add_shape_heightfield(
        heightfield=newton.Heightfield(np.array([[-0.3, 0.5], [0.2, 0.9]], dtype=np.float32), 2, 2, 1.0, 1.0)
    )
    assert floor_height(builder.finalize(device="cpu")) == pytest.approx(-0.3 - BELOW)
    builder.add_ground_plane(height=-0.5)
    assert floor_height(builder.finalize(device="cpu")) == pytest.approx(-0.5)


def test_isaac_labs_visualizer_leaves_planes_to_the_page():
    from isaaclab_visualizers.viser.viser_visualizer import NewtonViewerViser

    patch_viser_visualizer()
    plane = {"width": 8.0, "length": 8.0}
    skipped: Any = NewtonViewerViser._log_plane_instances
    assert skipped(None, "/model/plane", plane, np.zeros((1, 7)), None) is None


@pytest.mark.parametrize(
    ("agent", "title"),
    [("rsl_rl_mlp_cfg_entry_point", "G1, motion, stage 2, iteration 7"), ("", "G1, motion")],
)
def test_the_title_names_stage_and_iteration_of_umc_s_own_policies_alone(agent, title):
    info = SimpleNamespace(robot="g1", model="motion", stage=2, iteration=7, agent=agent)
    assert live.title(SimpleNamespace(checkpoints=(1,), info=info, task="UMC-G1-Stage2")) == title


@pytest.mark.parametrize(
    ("host", "address"), [("0.0.0.0", "localhost"), ("::", "localhost"), ("::1", "[::1]"), ("10.0.0.1", "10.0.0.1")]
)
def test_the_address_of_the_page_is_one_that_a_browser_opens(host, address):
    page: Any = SimpleNamespace(server=SimpleNamespace(get_port=lambda: 8080))
    assert Scene.url(page, host) == f"http://{address}:8080"
