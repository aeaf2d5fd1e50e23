# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Films: what the flags ask for, and one film of several policies on a real engine."""

import argparse
import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
import pytest
import torch
from fresh_policy import write_fresh
from isaaclab.managers import ManagerTermBase, TerminationTermCfg
from PIL import Image
from recorded_ledger import JOINTS
from run_script import run_script
from umc.rendering.colors import COMMAND_COLOR, SENSOR_COLOR, rgb
from umc.rendering.film import FallDetector, _note_events, describe, fault_color, film_name, scenario_title
from umc.rendering.film_cfg import QUICK, FilmCfg, add_film_arguments, check_output, film_cfg, film_files
from umc.rendering.layout import ALARM, Heading, Take
from umc.robots.go2 import GO2_JOINTS
from umc.tasks.parts import TaskPartsCfg
from umc.utils.errors import UmcError


def flags(**changes):
    parser = argparse.ArgumentParser()
    add_film_arguments(parser)
    return Namespace(
        **{**vars(parser.parse_args([])), "checkpoint": ["a.pt", "b.pt"], "policy": None, "out": None, **changes}
    )


def test_a_missing_ffmpeg_is_said_before_anything_is_filmed(monkeypatch):
    def missing():
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    for out in (None, Path("folder"), Path("film.gif")):
        with pytest.raises(UmcError, match="pip install imageio-ffmpeg"):
            check_output(flags(out=out))
    check_output(flags(out=Path("film.png")))


def test_flags_make_a_cfg():
    assert film_cfg(flags()) == FilmCfg()
    assert film_cfg(flags(quick=True, view="front")) == replace(QUICK, view="front")
    assert film_cfg(flags(steps=20, scenario=3)) == FilmCfg(steps=20, onset=10, scenario=3)
    assert film_cfg(flags(scenario="leg_dead", joints=["FL_calf_joint"])) == FilmCfg(
        scenario="leg_dead", joints=("FL_calf_joint",)
    )


@pytest.mark.parametrize("steps", [10_001, 200_000])
def test_a_film_that_is_too_long_is_refused_in_the_same_words(steps):
    with pytest.raises(UmcError, match=f"^--steps is {steps}; it has to lie between 2 and 10000$"):
        film_cfg(flags(steps=steps))


def test_the_title_says_what_fails():
    titles = {
        4: "scenario 4: dead sensors, slow joints",
        8: "scenario 8: healthy",
        "dead+power_loss": "dead sensors, power loss",
        "leg_dead": "leg dead: dead sensors",
    }
    for scenario, title in titles.items():
        protocol = FilmCfg(scenario=scenario, file="real_world").protocol("a1", None)
        assert scenario_title(scenario, tuple(protocol.scenario(scenario).kinds)) == title


def test_films_of_different_faults_have_different_names():
    def name(*overrides, **changes):
        cfg = film_cfg(flags(**{"scenario": 2, **changes}), overrides)
        return film_name("T", cfg.protocol("a1", 7), cfg)

    names = [
        name(),
        name(joints=["FL_calf_joint"]),
        name(joints=["FR_calf_joint"]),
        name("protocol.severity.rom=0.9"),
        name("protocol.push=1.0"),
        name("protocol.command=[0.3, 0.0, 0.0]"),
        name(protocol="real_world", scenario="dead"),
        name(onset=50),
        name(onset=50, steps=300),
    ]
    assert names[0] == "T_scenario2_seed7"
    assert len(set(names)) == len(names)
    assert all(one.startswith(("T_scenario2_seed7_", "T_dead_seed7_")) for one in names[1:])
    assert name("protocol.push=1.0") == names[4]
    assert name(quick=True) == name()


def test_a_films_description_has_what_repeats_its_fault(monkeypatch):
    monkeypatch.setattr("umc.tasks.task_cfg.physics_name", lambda _: "newton")
    changes = ["protocol.severity.rom=0.9", "protocol.push=1.0", "protocol.noise=true"]
    cfg = film_cfg(flags(scenario=2, joints=["FL_calf_joint"]), changes)
    session = SimpleNamespace(task="T", env_cfg=None, checkpoints=())
    described = describe(session, cfg.protocol("a1", 7), Heading("", 500, 0.02, 100), ())
    about = json.loads(json.dumps(described))["protocol"]
    assert (about["name"], about["severity"]["rom"], about["push"], about["noise"]) == ("umc_paper", 0.9, 1.0, True)
    assert [setting["joints"] for setting in about["settings"]] == [["FL_calf_joint"]]
    kinds = ("dead", "rom")
    assert scenario_title(2, kinds, cfg.changes) == "scenario 2: dead sensors, smaller range of motion (rom 0.9)"
    whole = {"severity": {"rom": 0.9, "effort": 5.0}}
    assert scenario_title(2, kinds, whole) == scenario_title(2, kinds, cfg.changes)


def test_named_joints_fail_in_place_of_drawn_ones():
    (case,) = FilmCfg(scenario=4, joints=("FL_calf_joint",)).protocol("a1", None).cases()
    assert (case["joint_names"], case["num_joints"]) == (("FL_calf_joint",), (1, 1))
    with pytest.raises(UmcError, match="no joint fails in scenario 8"):
        FilmCfg(joints=("FL_calf_joint",)).protocol("a1", None)
    # of a scenario whose joints fail in groups, too
    cfg = FilmCfg(scenario="leg_power_loss", joints=("FL_calf_joint",), file="real_world")
    (case,) = cfg.protocol("a1", None, JOINTS).cases()
    assert (case["joint_names"], case["joint_groups"]) == (("FL_calf_joint",), None)
    # of a protocol that has severities of other joints by pattern
    cfg = FilmCfg(scenario="bias", joints=("FL_hip_joint",), file="real_world")
    cfg.check(cfg.protocol("go2", None, GO2_JOINTS), GO2_JOINTS)


def test_a_protocols_severities_are_changed_by_overrides():
    cfg = film_cfg(flags(scenario="braking"), ["protocol.severity.braking=2.0", "physics=ovphysx"])
    assert cfg.protocol("a1", None, JOINTS).severity["braking"] == 2.0


@pytest.mark.parametrize(
    ("file", "stage", "named", "scenario"),
    [
        (None, 2, None, 2),
        (None, 1, None, 8),
        ("real_world", 2, None, "power_loss"),
        ("real_world", 2, "locked", "locked"),
        ("real_world", 1, None, 8),
    ],
)
def test_a_protocol_without_severities_for_the_default_scenario_is_filmed_in_its_own(file, stage, named, scenario):
    cfg = film_cfg(flags(protocol=file, scenario=named)).for_stage(stage, named, "a1")
    assert cfg.scenario == scenario
    cfg.check(cfg.protocol("a1", None, JOINTS), JOINTS)


def test_changes_without_an_effect_on_a_film_are_refused(tmp_path):
    groups = "protocol.conditions.{}.joint_groups={{FL: ['FL_.*']}}"
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nextends: umc_paper\noverrides: {settings.severity: [{rom: 0.1}, {}, {}]}\n")
    for file, scenario, change, fix in (
        ("real_world", "leg_dead", groups.format("leg_power_loss"), "give --scenario leg_power_loss"),
        ("real_world", "leg_dead", groups.format("leg_dead"), None),
        (str(own), 2, "protocol.severity.rom=0.9", "settings of protocol own have their own"),
        (str(own), 3, "protocol.severity.effort=9.0", None),
        (None, 1, "protocol.severity={effort: 9.0, rom: 0.2}", "give --scenario effort"),
        (None, 3, "protocol.severity={effort: 9.0, rom: 0.2}", None),
        (str(own), 2, "protocol.severity={rom: 0.9}", "settings of protocol own have their own"),
        ("real_world", "braking", "protocol.severity.braking=2.0", None),
    ):
        cfg = film_cfg(flags(protocol=file, scenario=scenario), [change])
        protocol = cfg.protocol("a1", None, JOINTS)
        if fix is None:
            cfg.check(protocol, JOINTS)
        else:
            with pytest.raises(UmcError, match=fix):
                cfg.check(protocol, JOINTS)


def test_a_fault_without_a_severity_is_refused():
    cfg = FilmCfg(scenario=2, file="real_world")
    with pytest.raises(UmcError, match="kind 'rom' needs a severity"):
        cfg.check(cfg.protocol("a1", None, JOINTS), JOINTS)


def test_a_robot_of_another_project_is_filmed_by_its_own_protocol():
    solo12 = Path(__file__).resolve().parents[2] / "examples" / "my_extension" / "solo12.yaml"
    protocol = film_cfg(flags(protocol=str(solo12), scenario=4)).protocol("solo12", None)
    assert (protocol.name, protocol.scenarios, protocol.command) == ("solo12", (4,), (0.25, 0.0, 0.0))
    assert FilmCfg().protocol("solo12", None).name == "any_robot"


def test_a_fall_by_a_termination_that_is_a_class_is_noticed():
    class Tipped(ManagerTermBase):
        def __call__(self, env, limit):
            return torch.tensor([env.tilt > limit])

    cfg = SimpleNamespace(terminations=SimpleNamespace(tipped=TerminationTermCfg(func=Tipped, params={"limit": 1.0})))
    cfg.parts = TaskPartsCfg()
    falls, env = FallDetector(cfg), SimpleNamespace(tilt=0.5, num_envs=1, device="cpu")
    assert cfg.terminations.tipped is None
    falls.resolve(env)
    assert not falls.fallen(env)
    env.tilt = 2.0
    assert falls.fallen(env)


@pytest.mark.parametrize(
    ("fails_at", "noted"), [(4, (None, (), None, 4)), (5, (None, (), None, 5)), (6, (5, ("b",), 5, 6))]
)
def test_nothing_sets_in_once_the_simulation_has_failed(monkeypatch, fails_at, noted):
    monkeypatch.setattr("umc.rendering.film.faulty_joints", lambda _: torch.tensor([[False, True]]))
    take = Take("a")
    for number in range(1, 9):
        state = SimpleNamespace(active=torch.tensor([number >= 5]), joint_names=("a", "b"))
        step = SimpleNamespace(number=number, non_finite=torch.tensor([number == fails_at]))
        _note_events(take, step, state, fallen=number >= 5)
    assert (take.onset, take.joints, take.fell, take.failed) == noted


def test_a_folder_gets_every_kind_and_a_file_name_its_own():
    assert [path.name for path in film_files(Path("films"), "walk")] == ["walk.mp4", "walk.gif", "walk.png"]
    assert film_files(Path("films/a.GIF"), "walk") == [Path("films/a.GIF")]
    assert [path.parent.name for path in film_files(Path("v1.2"), "walk")] == ["v1.2"] * 3


def test_the_legend_has_the_color_that_joints_get():
    colors = {
        ("imu_drift",): None,
        ("imu_drift", "dead"): rgb(SENSOR_COLOR),
        ("dropped",): rgb(COMMAND_COLOR),
        ("dropped", "dead"): rgb(SENSOR_COLOR),
        ("dead",): rgb(SENSOR_COLOR),
        ("dead", "effort"): ALARM,
        ("effort",): ALARM,
        (): None,
    }
    assert {kinds: fault_color(kinds) for kinds in colors} == colors


def orange(panel):
    """Pixels of a link whose sensor is dead; the line of the fault on the ground is red."""
    body = panel.astype(int)
    return int(((body[..., 0] > 130) & (body[..., 0] - body[..., 1] > 35) & (body[..., 1] - body[..., 2] > 35)).sum())


def reddish(panel):
    """Pixels of the line of the fault."""
    body = panel.astype(int)
    return int(((body[..., 0] > 130) & (body[..., 1] < 90) & (body[..., 2] < 90)).sum())


@pytest.mark.engine
def test_policies_have_the_same_fault_from_the_same_start_in_one_film(tmp_path):
    first, second = (write_fresh(tmp_path / name, model=name) for name in ("mlp", "transformer_small32"))
    arguments = ["--quick", "--steps", 16, "--scenario", 1, "--onset", 8, "--seed", 7, "--out", tmp_path / "out"]
    arguments += ["--names", "A", "B", "A", "physics=newton_mjwarp"]  # repeats to the bit
    run_script("play.py", "--checkpoint", first, second, first, *arguments)
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    name = written[0].removesuffix(".gif")
    assert name.startswith("UMC-A1-Stage2_scenario1_seed7_")
    assert written == [f"{name}{suffix}" for suffix in (".gif", ".json", ".mp4", ".png")]
    frames = np.stack(list(imageio.get_reader(tmp_path / "out" / f"{name}.mp4").iter_data()))
    assert len(frames) == 8
    with Image.open(tmp_path / "out" / f"{name}.gif") as gif:
        assert gif.n_frames == 4

    policies = json.loads((tmp_path / "out" / f"{name}.json").read_text())["policies"]
    assert [one["name"] for one in policies] == ["A", "B", "A"]
    assert [one["onset"] for one in policies] == [8, 8, 8]
    assert policies[0]["joints"]
    assert policies[0]["joints"] == policies[1]["joints"] == policies[2]["joints"]
    assert policies[0]["distance"] == policies[2]["distance"] != policies[1]["distance"]

    width = QUICK.size[0]
    step = (frames.shape[2] - width) // 2
    panels = [frames[:, frames.shape[1] // 4 : -frames.shape[1] // 4, at : at + width] for at in (0, step, 2 * step)]
    # frames of steps 2, 4, 6 are healthy, those from step 8 on are not: in every panel
    for panel in panels:
        assert [orange(frame) > 40 for frame in panel] == [False] * 3 + [True] * 5
        assert [reddish(frame) > 20 for frame in panel] == [False] * 3 + [True] * 5
    # the same policy twice is the same film; another policy starts alike and goes its own way
    twice, apart = (np.abs(panels[0].astype(int) - panels[number]).mean(axis=(1, 2, 3)) for number in (2, 1))
    assert twice.max() < 2.0  # what H.264 leaves
    assert apart[0] < apart[-1]
    assert apart[-1] > 2 * twice[-1]
