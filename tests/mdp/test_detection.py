# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The cfg that chooses what a policy is told about faults, and the observation terms that read it."""

from types import SimpleNamespace

import pytest
import torch
from isaaclab_tasks.contrib.velocity.config.a1.flat_env_cfg import UnitreeA1FlatEnvCfg
from umc.faults import FaultSchedule, FaultState
from umc.faults.detection import CorruptedOracle, NoDetection
from umc.mdp import DetectionCfg, add_faults
from umc.mdp.detection import make_detection
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError


def made(**fields):
    state = FaultState(FaultSchedule(["a", "b"], scenario="dead", onset=1, num_joints=(1, 1)), 4)
    return make_detection(SimpleNamespace(detection=DetectionCfg(**fields)), state, 0.02)


def test_the_cfg_chooses_the_source():
    assert made() is None
    assert make_detection(SimpleNamespace(), None, 0.02) is None  # a cfg of before there was a choice
    assert isinstance(made(source="none"), NoDetection)
    assert isinstance(made(source="corrupted_oracle", delay=3), CorruptedOracle)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source": "guess"}, "env.detection.source is 'guess'; choose one of oracle, corrupted_oracle, none"),
        ({"delay": 3}, "env.detection.delay needs env.detection.source=corrupted_oracle"),
        ({"source": "none", "missed": 0.1}, "env.detection.missed needs env.detection.source=corrupted_oracle"),
    ],
)
def test_errors_without_effect_are_refused(fields, words):
    with pytest.raises(UmcError, match=words):
        made(**fields)


def test_every_task_takes_it_on_the_command_line():
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, ["env.detection.source=corrupted_oracle", "env.detection.delay=10"])
    assert (cfg.detection.source, cfg.detection.delay, cfg.detection.missed) == ("corrupted_oracle", 10, 0.0)
    with pytest.raises(UmcError, match=r"env.detection.missed.* at most 1"):
        resolve_cfgs("UMC-A1-Stage2", None, ["env.detection.missed=2"])


def test_add_faults_gives_a_task_the_choice():
    cfg = UnitreeA1FlatEnvCfg()
    add_faults(cfg, severity={"rom": 0.3, "effort": 5.0, "velocity": 3.0})
    cfg.from_dict({"detection": {"source": "none"}})  # as Hydra does
    assert cfg.detection == DetectionCfg(source="none")


def walk(physics):
    """Whether a sensor is dead, whether the policy is told so, and its flag, step by step."""
    import umc.mdp as mdp
    from isaaclab.envs import ManagerBasedRLEnv

    detection = ["env.detection.source=corrupted_oracle", "env.detection.delay=5"]
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, [f"physics={physics}", "env.scene.terrain=flat", *detection])
    cfg.scene.num_envs, cfg.sim.device = 4, "cpu"
    cfg.events.faults.params |= {"ratios": None, "scenario": "dead+rom", "onset": 3}
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    seen = []
    for _ in range(12):
        obs, *_ = env.step(torch.zeros(4, 12))
        dead = mdp.fault_state(env).joint_mask.any()
        seen.append([bool(dead), bool(obs["joint_mask"].any()), float(obs["fault_flag"].max())])
    return seen


@pytest.mark.engine
def test_a_policy_is_told_of_a_fault_as_late_as_the_cfg_says(run_engine):
    seen = run_engine(walk, physics="ovphysx")
    dead, told = ([one[column] for one in seen].index(True) for column in (0, 1))
    assert told - dead == 5
    assert [flag for *_, flag in seen] == [-1.0] * told + [1.0] * (len(seen) - told)
