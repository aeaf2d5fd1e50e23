# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What an agent says about its environment and its Stage 1 is what scripts/train.py does."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dummy_training as dummy
import pytest
from dummy_training import planned, put_checkpoint
from umc import mdp
from umc.cli.main import main
from umc.rl.checkpoint import checkpoint_info, read_checkpoint
from umc.training import train as launch
from umc.training.arguments import parse
from umc.training.plan import CPU_NUM_ENVS, needs_stage1
from umc.utils.errors import UmcError
from umc.utils.process import ChildFailed


def command(agent, task="UMC-A1-Stage2"):
    return ["--task", task, "--agent", agent, "--device", "cpu"]


@pytest.fixture(autouse=True)
def empty_place(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)


def put(experiment, name="model_5.pt", record=None, **info):
    if record is not None:
        info["agent"] = record["agent"]
    return put_checkpoint(Path("logs/rsl_rl") / experiment / "run", name, record, **info)


def test_the_odds_of_an_agent_reach_its_env_and_its_record():
    put("umc_a1_mlp_stage1")
    chosen = planned(*command("mlp_ratio_1011"), "agent.algorithm.gamma=0.9")
    assert tuple(chosen.env_cfg.events.faults.params["ratios"]) == (1.0, 0.0, 1.0, 1.0)
    tokens = ["env.events.faults.params.ratios=(1.0,0.0,1.0,1.0)"]
    assert chosen.record.fields["agent_overrides"] == tokens
    assert chosen.record.fields["overrides"] == [*tokens, "physics=ovphysx", "agent.algorithm.gamma=0.9"]
    assert tuple(planned(*command("mlp")).env_cfg.events.faults.params["ratios"]) == (1.0, 1.0, 1.0, 1.0)


def test_what_is_typed_wins_over_the_agent_and_is_kept_by_resume():
    put("umc_a1_mlp_stage1")
    typed = "env.events.faults.params.ratios=(0.0,0.0,1.0,0.0)"
    first = planned(*command("mlp_ratio_1011"), typed)
    assert tuple(first.env_cfg.events.faults.params["ratios"]) == (0.0, 0.0, 1.0, 0.0)
    put("umc_a1_mlp_ratio_1011_stage2", record=first.record.fields, task="UMC-A1-Stage2", stage=2)
    resumed = planned(*command("mlp_ratio_1011"), "--resume")
    assert tuple(resumed.env_cfg.events.faults.params["ratios"]) == (0.0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize("agent", ["mlp_ratio_0111", "mlp_mask_100"])
def test_an_ablation_starts_from_the_stage_1_of_the_agent_that_it_varies(agent, monkeypatch):
    calls = []

    def run_umc(_command, arguments):
        calls.append(arguments)
        raise ChildFailed("train", 130)

    monkeypatch.setattr(launch, "run_umc", run_umc)
    main(["train", *command(agent)])
    (arguments,) = calls
    stage1 = parse(arguments)
    assert (stage1.task, stage1.spec.name, stage1.overrides) == ("UMC-A1-Stage1", "mlp", ["physics=ovphysx"])
    path = put("umc_a1_mlp_stage1")
    chosen = planned(*command(agent))
    assert chosen.start_from == path
    assert chosen.agent_cfg.experiment_name == f"umc_a1_{agent}_stage2"


def test_one_stage_training_starts_from_nothing_although_a_stage_1_is_there():
    put("umc_a1_mlp_stage1")
    request = parse(command("mlp_one_stage"))
    assert not needs_stage1(request)
    chosen = planned(*command("mlp_one_stage"))
    assert chosen.start_from is None
    assert chosen.record.fields["parent"] is None


def test_a_curriculum_spans_the_run_however_long_it_is():
    chosen = planned(*command("mlp_curriculum"), "--max_iterations", "8")
    steps = 24  # of an iteration
    stages = chosen.env_cfg.curriculum.faults.params["stages"]
    assert [first for first, _ in stages] == [0, 2 * steps, 4 * steps, 6 * steps]
    assert [list(ratios).index(1) for _, ratios in stages] == [0, 3, 1, 2]
    assert chosen.record.fields["fault_curriculum"] == stages
    assert chosen.env_cfg.curriculum.faults.func is mdp.fault_curriculum
    assert planned(*command("mlp_one_stage")).env_cfg.curriculum is None
    with pytest.raises(UmcError, match="3 iterations cannot hold the 4 stages of mlp_curriculum"):
        planned(*command("mlp_curriculum"), "--max_iterations", "3")


@pytest.mark.parametrize(
    ("agent", "option"),
    [("mlp_curriculum", "agent.seed=1"), ("mlp", "agent.severity_iterations=5"), ("mlp", "agent.sample_failures=true")],
)
def test_a_curriculum_and_the_replay_of_a_ledger_are_refused_before_anything_starts(agent, option):
    put("umc_a1_mlp_stage1")
    for name, value in (("replay", "ledger.jsonl"), ("cases", '[{"scenario":"dead"}]')):
        with pytest.raises(UmcError, match=rf"params\.{name} assigns all faults, which no curriculum changes"):
            planned(*command(agent), option, f"env.events.faults.params.{name}={value}")
    replayed = planned(*command("mlp"), "env.events.faults.params.replay=ledger.jsonl")
    assert replayed.env_cfg.events.faults.params["replay"] == "ledger.jsonl"


def test_a_curriculum_may_span_more_than_the_phase_that_begins_it():
    phase = planned(*command("mlp_curriculum"), "--max_iterations", "4", "agent.curriculum_iterations=16")
    put("umc_a1_mlp_curriculum_stage2", "model_3.pt", phase.record.fields, task="UMC-A1-Stage2", stage=2)
    resumed = planned(*command("mlp_curriculum"), "--resume", "--max_iterations", "16")
    for plan in (phase, resumed):
        stages = plan.env_cfg.curriculum.faults.params["stages"]
        assert [first for first, _ in stages] == [0, 4 * 24, 8 * 24, 12 * 24]
    with pytest.raises(UmcError, match=r"3 iterations cannot hold .* or agent\.curriculum_iterations$"):
        planned(*command("mlp_curriculum"), "--max_iterations", "9", "agent.curriculum_iterations=3")


def test_any_agent_can_let_severities_grow_and_sample_failures():
    plan = planned(*command("mlp_one_stage"), "agent.severity_iterations=10", "agent.sample_failures=true")
    terms = plan.env_cfg.curriculum
    assert terms.faults.params == {"level_ramp": (0, 240)}
    assert terms.failures.func is mdp.failure_sampling
    plan = planned(*command("mlp_curriculum"), "agent.severity_iterations=10")
    assert plan.env_cfg.curriculum.faults.params["stages"]
    assert plan.env_cfg.curriculum.failures is None
    with pytest.raises(UmcError, match=r"chooses the odds of faults itself; leave agent.sample_failures out"):
        planned(*command("mlp_curriculum"), "agent.sample_failures=true")


def test_bfloat16_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr("umc.utils.matmul.onednn_is_exact", lambda: True)
    with pytest.raises(UmcError, match=r"no instructions for bfloat16 .* leave agent.bfloat16 out"):
        planned(*command("mlp_one_stage"), "agent.bfloat16=true")


def test_on_a_cpu_a_baseline_trains_as_long_as_both_stages_of_umc():
    baseline = planned(*command("nm_mlp", "UMC-A1-Stage1"))
    umc = planned(*command("mlp", "UMC-A1-Stage1"))
    assert baseline.env_cfg.scene.num_envs == umc.env_cfg.scene.num_envs == CPU_NUM_ENVS
    assert baseline.agent_cfg.max_iterations == 2 * umc.agent_cfg.max_iterations


def test_a_checkpoint_says_what_its_agent_changed_and_older_ones_changed_nothing():
    changed = put("one", agent_overrides=["env.decimation=2"])
    assert checkpoint_info(read_checkpoint(changed), changed).agent_overrides == ["env.decimation=2"]
    data = read_checkpoint(changed)
    del data["infos"]["umc"]["agent_overrides"]
    assert checkpoint_info(data, changed).agent_overrides == []


def built(plan, monkeypatch):
    """The cfg that `launch` builds the env from, and the number of env steps that it starts at."""
    handed: dict = {}
    env: Any = SimpleNamespace(common_step_counter=0, scene={"robot": SimpleNamespace(joint_names=dummy.JOINTS)})
    env.unwrapped = env

    def make(_task, cfg):
        handed["cfg"] = cfg
        return env

    def wrap(env, _cfg):
        handed["steps"] = env.common_step_counter  # wrapping resets the env, which draws by them

    monkeypatch.setattr("gymnasium.make", make)
    monkeypatch.setattr("umc.mdp.fault_state", lambda _: SimpleNamespace(episode=None))
    faults = SimpleNamespace(reset_faults=lambda envs: handed.update(drawn_again=envs))
    monkeypatch.setattr("umc.mdp.fault_terms.fault_term", lambda _: faults)
    runner = SimpleNamespace(env=env, env_counters={})
    monkeypatch.setattr(launch, "_library", lambda _: (wrap, lambda *_, **__: runner))
    monkeypatch.setattr(launch, "load_start", lambda *_: None)
    launch._load(plan, launch._build(plan, contextlib.ExitStack()))
    return handed


def test_the_env_of_a_resumed_run_goes_on_in_its_curriculum(monkeypatch):
    record = planned(*command("mlp_curriculum"), "--max_iterations", "8").record.fields
    put("umc_a1_mlp_curriculum_stage2", "model_5.pt", record, task="UMC-A1-Stage2", stage=2)
    plan = planned(*command("mlp_curriculum"), "--resume")
    assert plan.iterations_done == 6  # those of numbers 0 to 5
    assert plan.env_cfg.curriculum.faults.params["stages"] == record["fault_curriculum"]
    resumed = built(plan, monkeypatch)
    fresh = built(planned(*command("mlp_one_stage")), monkeypatch)
    assert (resumed["steps"], fresh["steps"]) == (6 * 24, 0)
    # faults drawn before the number of the episode was known have been encountered already
    assert (resumed.get("drawn_again"), fresh.get("drawn_again")) == (slice(None), None)


def test_the_env_of_a_privileged_critic_observes_faults(monkeypatch):
    cfg = built(planned(*command("mlp_one_stage"), "agent.critic_sees_faults=true"), monkeypatch)["cfg"]
    assert isinstance(cfg.observations.live_faults, mdp.LiveFaultsCfg)
