# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the documentation, from made-up rollouts and films."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fresh_policy import write_fresh
from PIL import Image
from torch.utils.tensorboard import SummaryWriter
from umc.faults import FaultSchedule, JointLimits
from umc.faults.kinds import KINDS
from umc.rendering.layout import Moment, Take
from umc.utils.cli import run_main

from tools import docs_figures
from tools.docs_figures import (
    AFTER,
    BEFORE,
    EXAMPLES,
    KEPT,
    SEVERITIES,
    Rollout,
    draw_faults,
    example_faults,
    latest,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
LARGEST = 900_000
"""Most bytes of all pictures of faults together."""

GREEN, VIOLET = (10, 200, 30), (120, 20, 220)


def run(argv):
    return run_main(docs_figures.main, argv)


@pytest.fixture
def rollout():
    """Every quantity of every env has a value of its own, and limits fall at onset."""
    time = np.linspace(-0.6, 1.2, BEFORE + AFTER + 1)
    kinds = [*SEVERITIES, "healthy"]
    arrays = {}
    names = ("position", "speed", "torque", "read", "sent", "arrived", "rate", "down", "true rate", "true down")
    for number, name in enumerate(names):
        arrays[name] = np.sin(9.0 * time)[:, None] + 0.01 * np.arange(len(kinds)) + number
    for name, sign in (("lower", -1.0), ("upper", 1.0), ("velocity", 1.0), ("effort", 1.0)):
        arrays[name] = np.where(time < 0.0, 9.0, 2.0)[:, None] * sign * np.ones(len(kinds))
    return Rollout(time, kinds, arrays)


def curves(axis):
    """What the lines of an axis show, by label."""
    return {line.get_label(): line.get_ydata() for line in axis.get_lines() if len(line.get_ydata()) > 2}


@pytest.mark.parametrize("layer", EXAMPLES)
def test_each_kind_has_its_column_and_its_own_curves(rollout, layer):
    figure = draw_faults(rollout, layer)
    kinds = list(EXAMPLES[layer])
    axes = np.array(figure.axes).reshape(4, len(kinds))
    named = figure.get_suptitle() + axes[0, 0].get_ylabel() + axes[1, 0].get_ylabel()
    assert named.count("FL_calf") == (2 if layer == "imu" else 1)
    assert [axis.get_title().strip() for axis in axes[0]] == kinds
    for column, kind in zip(axes.T, kinds, strict=True):
        common = ("position", "speed") if layer == "imu" else ("position", "speed", "torque")
        for axis, name in zip(column, common, strict=False):
            shown = curves(axis)
            assert np.array_equal(shown["with the fault"], rollout.of(name, kind))
            assert np.array_equal(shown["healthy twin"], rollout.of(name))
        last = curves(column[3])
        if layer == "imu":
            for axis, name in zip(column[2:], ("rate", "down"), strict=True):
                assert np.array_equal(curves(axis)["with the fault"], rollout.of(name, kind))
                assert np.array_equal(curves(axis)["true value"], rollout.of(f"true {name}", kind))
        elif layer == "command":
            assert np.array_equal(last["target sent"], rollout.of("sent", kind))
        else:
            assert np.array_equal(last["with the fault"], rollout.of("read", kind))
        for axis, upper in zip(column, ("upper", "velocity", "effort"), strict=False):
            limits = curves(axis).get("limit")
            assert (limits is not None) == (layer in ("joint", "motor"))
            if limits is not None:  # drawn from the onset on, where the fault has changed it
                assert np.array_equal(np.isnan(limits), rollout.time < 0.0)
                assert np.array_equal(limits[rollout.time >= 0.0], rollout.of(upper, kind)[rollout.time >= 0.0])


def test_each_env_of_the_rollout_has_its_kind():
    one = torch.ones(1)
    schedule = FaultSchedule([docs_figures.JOINT], nominal=JointLimits(-one, one, one, one), **example_faults())
    envs = torch.arange(len(SEVERITIES) + 1)
    plan = schedule.draw(envs, torch.zeros_like(envs))
    shown = [[kind.name for kind, on in zip(schedule.kinds, row, strict=True) if on] for row in plan.kinds[:, 0]]
    assert shown == [*([kind] for kind in SEVERITIES), []]


def test_every_kind_is_shown_and_the_page_has_the_pictures():
    assert set(SEVERITIES) == {name for name, kind in KINDS.items() if type(kind).__module__.startswith("umc.")}
    shown = re.findall(r"images/(fault_\w+\.png)", (DOCS / "faults.md").read_text())
    assert sorted(set(shown)) == sorted(f"fault_{layer}.png" for layer in EXAMPLES)
    assert sum((DOCS / "images" / picture).stat().st_size for picture in set(shown)) < LARGEST


@pytest.mark.slow
def test_pictures_of_faults_are_small_and_can_be_read(rollout, tmp_path, monkeypatch):
    monkeypatch.setattr(docs_figures, "roll_out", lambda checkpoint, physics: rollout)
    checkpoint = tmp_path / "policy.pt"
    checkpoint.touch()
    assert run(["faults", "--out", str(tmp_path / "new"), "--checkpoint", str(checkpoint)]) == 0
    pictures = sorted((tmp_path / "new").iterdir())
    assert [picture.name for picture in pictures] == [f"fault_{layer}.png" for layer in sorted(EXAMPLES)]
    assert sum(picture.stat().st_size for picture in pictures) < LARGEST
    assert all(min(Image.open(picture).size) >= 750 for picture in pictures)


def film(session, protocol, cfg, steps):
    """Stills of one color with another at their left edge, at 0.5 m/s."""
    assert (protocol.scenarios, session.options.num_envs) == ((8,), 1)
    take = Take("walk")
    for step in sorted(steps):
        frame = np.full((60, 100, 3), GREEN, dtype=np.uint8)
        frame[:, :10] = VIOLET
        take.frames.append(frame)
        take.moments.append(Moment(step, 0.01 * step))
    return [take], 0.02


def test_a_strip_shows_the_middle_of_the_stills_that_were_asked_for(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("umc.rendering.film.film_takes", lambda *rest: asked.append(sorted(rest[-1])) or film(*rest))
    out = tmp_path / "walk.png"
    arguments = ["--checkpoint", str(write_fresh(tmp_path)), "--out", str(out), "env.scene.terrain=flat"]
    assert run(["strip", *arguments, "--begin", "1", "--apart", "0.1", "--stills", "3"]) == 0
    assert asked == [[50, 55, 60]]
    page = np.asarray(Image.open(out)).astype(int)
    assert not (page == VIOLET).all(axis=-1).any()
    assert (page == GREEN).all(axis=-1).sum() == pytest.approx(3 * 60 * 100 * KEPT, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["strip", "--checkpoint", "a.pt", "--out", "walk.gif"], "must name a .png"),
        (["strip", "--checkpoint", "a.pt"], "must name a .png"),
        (["strip", "--checkpoint", "a.pt", "--out", "walk.png", "--begin", "nan"], "must be above 0 s"),
        (["strip", "--checkpoint", "a.pt", "--out", "walk.png", "--stills", "1"], "--stills at least 2"),
        (["strip", "--checkpoint", "nowhere.pt", "--out", "walk.png"], "no checkpoint at nowhere.pt"),
        (["faults", "--checkpoint", "nowhere.pt"], "there is no checkpoint nowhere.pt"),
        (["curves", "nowhere"], "name the folder of a recipe"),
        (["terrain", "tracks.png", "--flat"], "unknown argument --flat"),
    ],
)
def test_a_mistake_is_one_line(arguments, words, capsys):
    assert run(arguments) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: ")
    assert words in line


def test_the_curves_of_a_recipe_mark_each_of_its_phases(tmp_path, monkeypatch):
    ends, runs = ("model_3.pt", "model_7.pt", "model_5.pt"), ("stage1", "stage1", "stage2")
    for run_dir, steps in (("stage1", 8), ("stage2", 6)):
        writer = SummaryWriter(tmp_path / run_dir)
        for step in range(steps):
            for tag in docs_figures.CURVES:
                writer.add_scalar(tag, step, step)
        writer.close()
    same = {"status": "done", "fingerprint": "", "started_at": ""}
    phases = [
        {"title": end, "run_dir": str(tmp_path / one), "checkpoint": end, **same}
        for one, end in zip(runs, ends, strict=True)
    ]
    (tmp_path / "state.json").write_text(json.dumps({"format": 2, "recipe": "g1", "phases": phases}))
    figures = []
    monkeypatch.setattr(docs_figures, "save", lambda figure, *rest, **more: figures.append(figure))
    assert run(["curves", str(tmp_path)]) == 0
    for axis in figures[0].axes:
        assert [line.get_xdata()[0] for line in axis.lines if line.get_linestyle() == ":"] == [0, 3, 8]
        assert [list(line.get_xdata()) for line in axis.lines[:2]] == [list(range(8)), list(range(8, 14))]
        assert [text.get_text() for text in axis.texts] == ["1", "2", "3"]


def test_a_curve_of_a_resumed_run_does_not_run_back():
    rows = [(0, 1.0, 10.0), (1, 2.0, 11.0), (2, 3.0, 12.0), (1, 4.0, 20.0), (2, 5.0, 21.0), (3, 6.0, 22.0)]
    steps, values = latest(
        [SimpleNamespace(step=step, value=value, wall_time=time) for step, value, time in rows[::-1]]
    )
    assert (steps, values) == ([0, 1, 2, 3], [1.0, 4.0, 5.0, 6.0])
