# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Two devices agree where their ledgers and observations do; a CPU stands in for the GPU."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fake_scene import task_cfg
from recorded_device import recording
from umc.evaluation import device_speed, devices
from umc.evaluation.device_speed import counted_waits, measure, read_speed
from umc.evaluation.devices import (
    BASE_TERMS,
    EPISODE,
    EPISODES,
    FAULTS,
    FIRST_TOLERANCE,
    GROUND_STEPS,
    PHYSX_BASE_FIRST_TOLERANCE,
    PHYSX_BASE_TOLERANCE,
    PHYSX_GROUND_TOLERANCE,
    PHYSX_TOLERANCE,
    RECORDED_ENVS,
    SHARE,
    TOLERANCE,
    compare,
    ledger_differences,
    make_repeatable,
    read_recording,
)
from umc.mdp import CommandFaultsCfg
from umc.utils.io import write_torch


@pytest.fixture
def pair(tmp_path):
    """Two recordings of the same, of which the second may be changed."""
    return recording(tmp_path), recording(tmp_path)


def leaves(content, place=()):
    """Places of all numbers, words and truth values in a line of a ledger."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield from leaves(value, (*place, key))
    elif content is not None:
        yield place


def changed(line, place, by=1):
    """A line of a ledger with another number at a place."""
    content = json.loads(line)
    at = content
    for key in place[:-1]:
        at = at[key]
    value = at[place[-1]]
    at[place[-1]] = f"{value}x" if isinstance(value, str) else not value if isinstance(value, bool) else value + by
    return json.dumps(content, separators=(",", ":"))


def test_equal_recordings_agree(pair):
    found = compare(*pair)
    assert found.failures == ()
    assert found.largest == found.median == {"policy": 0.0, "policy (base)": 0.0, "joint_mask": 0.0}
    assert found.switches == pair[0].ledger.count('{"switch"') > 50
    assert found.ledger_lines == pair[0].ledger.count("\n")


def test_every_entry_of_a_ledger_counts(pair):
    """One of each sort: a key and its depth, in lines of every sort."""
    lines = pair[0].ledger.splitlines()
    seen = set()
    for number, line in enumerate(lines):
        for place in leaves(json.loads(line)):
            sort = tuple(key if isinstance(key, str) else "[]" for key in place)
            if sort in seen:
                continue
            seen.add(sort)
            if sort[0] in devices.WINDOW:  # a single one may differ
                continue
            other = "\n".join([*lines[:number], changed(line, place), *lines[number + 1 :]])
            (failure,) = ledger_differences(pair[0].ledger, other, "newton")
            assert failure.startswith(f"the ledgers differ in line {number + 1}: ")
    assert {"plan", "switch", "end", "lower", "effort"} <= {sort[0] for sort in seen}


def test_windows_follow_positions_and_few_may_differ_by_more_than_the_tolerance(pair):
    lines = pair[0].ledger.splitlines()
    places = [(number, json.loads(line)) for number, line in enumerate(lines) if number and '"lower":[' in line]
    late = [number for number, line in places if line["switch"][0] % 2 == 0 and line["switch"][2] > GROUND_STEPS]
    assert late
    other = [*lines]
    for number in late:  # on the ground, when contacts have amplified rounding
        other[number] = changed(lines[number], ("lower", 0), 10 * TOLERANCE)
    assert ledger_differences(pair[0].ledger, "\n".join(other), "newton") == []
    numbers = [number for number, _ in places if number not in late]
    few = int((1.0 - SHARE) * len(numbers))
    assert few >= 1
    for by, count, failures in ((0.9, len(numbers), 0), (1.1, few, 0), (1.1, few + 1, 1)):
        other = [*lines]
        for number in numbers[:count]:
            other[number] = changed(lines[number], ("lower", 0), by * TOLERANCE)
        found = ledger_differences(pair[0].ledger, "\n".join(other), "newton")
        assert len(found) == failures
        words = f"{count} of {len(numbers)} windows in the ledgers are beyond the tolerance"
        assert not found or found[0].startswith(words)
    content = json.loads(lines[numbers[0]])
    del content["upper"]
    other = [*lines[: numbers[0]], json.dumps(content), *lines[numbers[0] + 1 :]]
    assert len(ledger_differences(pair[0].ledger, "\n".join(other), "newton")) == 1


def test_a_ledger_that_ends_early_differs(pair):
    shorter = pair[0].ledger.rsplit("\n", 2)[0]
    assert len(ledger_differences(pair[0].ledger, shorter, "newton")) == 1
    assert len(ledger_differences(shorter, pair[0].ledger, "newton")) == 1


@pytest.mark.parametrize(
    ("group", "place", "value", "words"),
    [
        ("joint_mask", (EPISODE + 5, 3, 2), 0.5, "joint_mask is not equal, first in env step 30 of env 3"),
        ("policy", (EPISODE, 3, 2), 1.1 * FIRST_TOLERANCE, "apart in the first env step"),
        ("policy", (2 * EPISODE - 1, slice(None), 2), 1.1 * TOLERANCE, "policy keeps the tolerance in 66.7% of"),
        ("policy", (5, slice(2, 5, 2), 2), 1.1 * TOLERANCE, "policy keeps the tolerance in 91.7% of"),
        ("policy", (7, 3, 2), torch.nan, "policy keeps the tolerance in 95.8% of"),
    ],
)
def test_an_observation_beyond_its_tolerance_fails(pair, group, place, value, words):
    pair[1].observations[group][place] += value
    (failure,) = compare(*pair).failures
    assert words in failure


def test_a_failure_names_the_scenarios_of_the_robots_that_differ(pair):
    header, *lines = (json.loads(line) for line in pair[0].ledger.splitlines())
    names = [scenario["name"] for scenario in header["scenarios"]]
    plans = {tuple(line["plan"]): line["faults"] for line in lines if "plan" in line}
    chosen = [(env, 1) for env in range(16) if any(names[one["scenario"]] == "mine" for one in plans[env, 1])]
    assert 1 < len(chosen) < 16
    for env, episode in chosen:
        pair[1].observations["policy"][episode * EPISODE + GROUND_STEPS - 1, env, 0] += 1.0
    (failure,) = compare(*pair).failures
    assert failure.count(" beyond") == len({tuple(one["scenario"] for one in plans[place]) for place in chosen})
    assert all("mine" in part for part in failure.split(": ")[1].split(", "))


def test_few_robots_may_take_another_step(pair, monkeypatch):
    pair[1].observations["policy"][5:EPISODE, 3] += 10.0
    assert compare(*pair).failures
    monkeypatch.setattr(devices, "SHARE", 23 / 24)
    assert compare(*pair).failures == ()


GROUND, AIR = slice(0, None, 2), slice(1, None, 2)
JOINTS, TRUNK = "policy", "policy (base)"


@pytest.mark.parametrize(
    ("engine", "group", "step", "envs", "tolerance"),
    [
        ("newton", JOINTS, 0, AIR, FIRST_TOLERANCE),
        ("newton", TRUNK, 0, GROUND, FIRST_TOLERANCE),
        ("newton", JOINTS, EPISODE - 1, AIR, TOLERANCE),
        ("newton", TRUNK, EPISODE - 1, AIR, TOLERANCE),
        ("newton", JOINTS, GROUND_STEPS - 1, GROUND, TOLERANCE),
        ("ovphysx", JOINTS, 0, AIR, FIRST_TOLERANCE),
        ("ovphysx", TRUNK, 0, GROUND, PHYSX_BASE_FIRST_TOLERANCE),
        ("ovphysx", JOINTS, EPISODE - 1, AIR, PHYSX_TOLERANCE),
        ("ovphysx", TRUNK, EPISODE - 1, AIR, PHYSX_BASE_TOLERANCE),
        ("ovphysx", JOINTS, GROUND_STEPS - 1, GROUND, PHYSX_GROUND_TOLERANCE),
        ("ovphysx", TRUNK, GROUND_STEPS - 1, GROUND, PHYSX_BASE_TOLERANCE),
    ],
)
def test_every_part_of_a_recording_has_its_tolerance(pair, engine, group, step, envs, tolerance):
    one, other = (each.model_copy(update={"engine": engine}) for each in pair)
    for by, fails in ((0.9 * tolerance, False), (1.1 * tolerance, True), (torch.nan, True)):
        other.observations[group].copy_(one.observations[group])
        other.observations[group][step, envs] += by
        found = compare(one, other)
        assert bool(found.failures) == fails
        assert found.largest[group] == pytest.approx(by, rel=1e-2) or math.isnan(by)


@pytest.mark.parametrize("engine", ["newton", "ovphysx"])
def test_late_env_steps_on_the_ground_count_only_where_they_are_not_finite(pair, engine):
    one, other = (each.model_copy(update={"engine": engine}) for each in pair)
    for by, fails in ((10.0, False), (torch.nan, True)):
        other.observations[JOINTS].copy_(one.observations[JOINTS])
        other.observations[JOINTS][GROUND_STEPS, GROUND] += by
        assert bool(compare(one, other).failures) == fails


@pytest.mark.parametrize("robot", ["A1", "Go2", "G1", "H1", "Solo8"])
def test_the_terms_of_the_base_are_known_by_their_names(robot):
    from isaaclab.envs import mdp as lab

    base = {lab.base_lin_vel, lab.base_ang_vel, lab.projected_gravity, lab.root_quat_w}
    found = {
        name: term.func
        for group in vars(task_cfg(robot).observations).values()
        for name, term in getattr(group, "__dict__", {}).items()
        if hasattr(term, "func")
    }
    assert {name for name, func in found.items() if func in base} == found.keys() & set(BASE_TERMS)
    assert found.keys() - set(BASE_TERMS)


def test_columns_of_the_base_are_recorded_apart(tmp_path):
    rows = torch.arange(8 * 9.0).view(8, 9)
    terms = {"policy": ["joint_pos", "base_ang_vel", "joint_vel", "projected_gravity"], "joint_mask": ["mask"]}
    widths = {"policy": [(2,), (3,), (1,), (3,)], "joint_mask": [(9,)]}
    env = SteppedEnv()
    env.observation_manager = SimpleNamespace(active_terms=terms, group_obs_term_dim=widths)
    env.scene = {"robot": SimpleNamespace(__backend_name__="newton")}
    env.observations = {"policy": rows, "joint_mask": rows + 100.0}
    (tmp_path / "ledger.jsonl").write_text("{}\n")
    devices.record(env, tmp_path / "ledger.jsonl", tmp_path / "out.pt")
    found = read_recording(tmp_path / "out.pt").observations
    assert found.keys() == {"policy", "policy (base)", "joint_mask"}
    for name, columns, plus in (
        ("policy", [0, 1, 5], 0),
        ("policy (base)", [2, 3, 4, 6, 7, 8], 0),
        ("joint_mask", [*range(9)], 100),
    ):
        assert torch.equal(found[name], (rows[:, columns] + plus).expand(EPISODE * EPISODES, 8, len(columns)))


@pytest.mark.parametrize("robot", ["A1", "Go2", "G1", "H1", "Solo8"])
def test_a_recording_leaves_nothing_to_a_devices_own_draws(robot, tmp_path):
    cfg = task_cfg(robot)
    make_repeatable(cfg, tmp_path / "ledger.jsonl")
    cfg.validate_config()
    events = {name: term for name, term in vars(cfg.events).items() if term is not None}
    assert list(events) == ["reset_faults", "faults", "default_state", "height"]
    assert events["faults"].params.keys() == FAULTS.keys() | {"asset_cfg", "ledger"}
    assert events["faults"].params.items() >= FAULTS.items()
    assert [type(term) for term in vars(cfg.actions).values()].count(CommandFaultsCfg) == 1
    assert not any(getattr(group, "enable_corruption", False) for group in vars(cfg.observations).values())
    assert [name for name, term in vars(cfg.terminations).items() if term is not None] == ["time_out"]
    assert cfg.curriculum is None
    assert cfg.episode_length_s / (cfg.sim.dt * cfg.decimation) == pytest.approx(EPISODE)
    assert all(low == high for low, high in list(vars(cfg.commands.base_velocity.ranges).values())[:3])


class SteppedEnv(SimpleNamespace):
    """An env that counts its steps."""

    def __init__(self, device="cpu"):
        super().__init__(device=device, num_envs=8, action_manager=SimpleNamespace(total_action_dim=12), steps=0)
        self.observations = {}

    def reset(self):
        self.steps = 0

    def step(self, actions):
        assert actions.shape == (8, 12)
        self.steps += 1
        return (self.observations,)


def test_the_speed_of_a_cpu_has_no_waits(tmp_path):
    env = SteppedEnv()
    measure(env, tmp_path / "speed.json")
    speed = read_speed(tmp_path / "speed.json")
    assert env.steps == device_speed.WARM_UP + device_speed.MEASURED
    assert (speed.num_envs, speed.steps, speed.waits, speed.gpu_bytes) == (8, device_speed.MEASURED, None, None)
    assert speed.rate == pytest.approx(8 * device_speed.MEASURED / speed.seconds)


@pytest.fixture
def sync_warnings(monkeypatch):
    """torch's switch for warnings at waits, and a function that waits."""
    modes = []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def wait():
        if modes[-1:] == ["warn"]:
            warnings.warn(device_speed.SYNC, UserWarning, stacklevel=1)

    return modes, wait


def test_waits_are_counted_by_the_line_that_waits(sync_warnings, recwarn):
    modes, wait = sync_warnings
    wait()
    with counted_waits() as found:
        for _ in range(3):
            wait()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("something else", UserWarning, stacklevel=1)
    wait()
    assert modes == ["warn", 0]
    ((place, count),) = found.items()
    assert count == 3
    assert [str(one.message) for one in recwarn] == ["something else"]  # other warnings are shown
    assert f"{Path(__file__).name} sync_warnings.<locals>.wait:" in place


def repeated(physics: str, out: str, seed: int) -> dict[str, Any]:
    """Record A1 in this process; ``seed`` is that of the actions."""
    import umc.tasks  # noqa: F401 - registers the ids
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets

    torch.set_num_threads(1)
    registered = load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point")
    cfg: Any = resolve_presets(registered, [physics, "flat"])
    cfg.sim.device = "cpu"
    ledger = Path(out).with_suffix(".jsonl")
    make_repeatable(cfg, ledger)
    cfg.scene.num_envs = 16
    devices.SEED = seed
    devices.record(ManagerBasedRLEnv(cfg), ledger, Path(out))
    return {}


@pytest.mark.engine
@pytest.mark.parametrize("physics", ["newton_mjwarp", "ovphysx"])
def test_two_processes_record_the_same_and_other_actions_differ(physics, run_engine, tmp_path):
    found = []
    for number, seed in enumerate((devices.SEED, devices.SEED, devices.SEED + 1)):
        run_engine(repeated, physics=physics, out=str(tmp_path / f"{number}.pt"), seed=seed)
        found.append(read_recording(tmp_path / f"{number}.pt"))
    same, other = compare(*found[:2]), compare(found[0], found[2])
    assert same.failures == ()
    assert max(same.largest.values()) == 0.0
    assert found[0].ledger.count('{"plan"') == 16 * (EPISODES + 1)
    assert same.switches > 16 * EPISODES
    assert found[0].observations["policy"].shape[:2] == (EPISODE * EPISODES, 16)
    assert other.failures
    # masks and flags say something
    assert all(found[0].observations[name].std() > 0.0 for name in devices.EXACT)
    # robots of an episode start alike, in both halves
    critic = torch.cat([found[0].observations[name] for name in ("critic", "critic (base)")], 2)
    starts = critic[EPISODE - 1 :: EPISODE]
    assert max(starts[:, half::2].std(0).max() for half in (0, 1)) == pytest.approx(0.0, abs=1e-6)
    # those of odd envs fall, and so does their speed; the others stand
    falling = 2.0 * (devices.EPISODE - 1) * 0.02 * -9.81
    speed = found[0].observations["critic (base)"][EPISODE - 2, :, 2]
    assert speed[1::2].median() == pytest.approx(falling, rel=0.1)
    assert speed[::2].median() == pytest.approx(0.0, abs=2.0)


def test_a_damaged_recording_is_refused(pair, tmp_path):
    write_torch(tmp_path / "cpu.pt", {"observations": pair[0].observations})
    with pytest.raises(devices.UmcError, match="ledger is missing"):
        read_recording(tmp_path / "cpu.pt")
    write_torch(tmp_path / "cpu.pt", dict(pair[0]))
    assert compare(read_recording(tmp_path / "cpu.pt"), pair[0]).failures == ()
    fewer = pair[0].model_copy(update={"observations": {"policy": pair[0].observations["policy"]}})
    with pytest.raises(devices.UmcError, match="other observations"):
        compare(pair[0], fewer)
    assert RECORDED_ENVS > 1
