# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A curriculum changes which faults are planned from its steps on and their severity, and logs both."""

from types import SimpleNamespace

import pytest
import torch
from fault_env import UnstartedEnv, events_with
from isaaclab.managers import CurriculumTermCfg
from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
from umc import mdp
from umc.faults import FaultSchedule, FaultState, JointLimits
from umc.mdp.curricula import has_fault_curriculum
from umc.utils.errors import UmcError

STAGES = [(0, (1, 0, 0, 0)), (100, (0, 0, 0, 1)), (200, {"sensor_only": 1.0})]
"""First no fault, then undetectable ones, then dead sensors."""
NUM_ENVS = 8


class Training:
    """As much of an environment as a curriculum sees."""

    def __init__(self, scenario=None, ratios=(1, 0, 0, 0), **params):
        kwargs = {"scenario": scenario} if scenario else {"ratios": ratios}
        severity = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}
        schedule = FaultSchedule(["a", "b", "c", "d"], severity=severity, num_joints=(1, 2), onset=1, **kwargs)
        self.schedule = schedule
        self.state = FaultState(schedule, NUM_ENVS)
        term = SimpleNamespace(schedule=schedule, source=schedule, state=self.state)
        self.env = SimpleNamespace(event_manager=events_with(term), common_step_counter=0)
        self.params = params
        self.term = mdp.fault_curriculum(SimpleNamespace(params=params), self.env)

    def episode_at(self, step):
        """Resets all envs as Isaac Lab does: the curriculum first, then the plans."""
        self.env.common_step_counter = step
        logged = self.term(self.env, slice(None), **self.params)
        self.state.reset(torch.arange(NUM_ENVS))
        return logged

    def planned(self):
        """Kinds of faults in this episode."""
        kinds = self.state.plan.kinds[:, 0].any(0).tolist()
        return {kind.name for kind, planned in zip(self.state.kinds, kinds, strict=True) if planned}


def test_stages_change_the_plans_of_the_next_episode_and_the_log():
    training = Training(stages=STAGES)
    assert training.episode_at(0)["stage"] == 0.0
    assert training.planned() == set()
    assert training.episode_at(99)["stage"] == 0.0
    assert training.planned() == set()
    assert training.episode_at(100)["stage"] == 1.0
    undetectable = training.planned()
    assert undetectable
    assert "dead" not in undetectable
    training.env.common_step_counter = 250
    assert training.planned() == undetectable  # a running episode keeps its plan
    assert training.episode_at(250)["stage"] == 2.0
    assert training.planned() == {"dead"}


def test_the_level_starts_with_mild_faults():
    training = Training(scenario="rom", level_ramp=(100, 200))
    logged, left = [], []
    for step in (0, 100, 150, 200, 1000):
        logged.append(training.episode_at(step)["level"])
        plan = training.state.plan
        left.append(plan.severity[:, 0, 0][plan.joints[:, 0]].mean().item())
    assert logged == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert left == pytest.approx([1.0, 1.0, 0.65, 0.3, 0.3])


def test_env_steps_may_be_whole_floats():
    training = Training(stages=[(0.0, (1, 0, 0, 0)), (1e5, (0, 0, 0, 1))], level_ramp=(0, 1e5))
    assert training.episode_at(50_000) == {"stage": 0.0, "level": 0.5}
    assert training.episode_at(100_000) == {"stage": 1.0, "level": 1.0}
    for ramp in ((0, 0.5), (0, float("inf"))):
        with pytest.raises(UmcError, match="a first and a later last env step"):
            Training(level_ramp=ramp)


def test_an_invalid_curriculum_is_refused():
    with pytest.raises(UmcError, match=r"start one after another.*\[100, 100\]"):
        Training(stages=[(100, (1, 0, 0, 0)), (100, (0, 1, 0, 0))])
    with pytest.raises(UmcError, match="a first and a later last env step"):
        Training(level_ramp=(200, 200))
    for ramp in (5000, [5000], "late", (-100, 200)):
        with pytest.raises(UmcError, match="a first and a later last env step"):
            Training(level_ramp=ramp)
    for stages in ([5000], [(0, 1, 2)], {0: (1, 0, 0, 0)}, [("soon", (1, 0, 0, 0))]):
        with pytest.raises(UmcError, match=r"stages .* must list pairs of a first env step and ratios"):
            Training(stages=stages)
    with pytest.raises(UmcError, match="'scenario_1' twice"):  # at the start, not at its env step
        Training(ratios={1: 1, 8: 1}, stages=[(0, {1: 1, 8: 1}), (50_000, {1: 1, "scenario_1": 2})])


def test_scenarios_in_which_robots_fall_are_drawn_more_often():
    """The odds of the next plans follow the falls since the last change, older ones with half the weight."""
    training = Training(ratios=(1, 1, 2, 0))
    falls = [{"normal": (10.0, 0.0), "sensor_only": (10.0, 2.0), "detectable": (10.0, 8.0)}, {}]
    log = SimpleNamespace(take_counts=lambda: falls.pop(0))
    training.env.event_manager.get_term_cfg("faults").func.log = log
    sampling = mdp.failure_sampling(SimpleNamespace(params={}), training.env)

    def odds(step):
        training.env.common_step_counter = step
        logged = sampling(training.env, slice(None), least=0.2, interval=100)
        assert sum(logged.values()) == pytest.approx(1.0)
        return [training.schedule.ratios[name] for name in ("normal", "sensor_only", "detectable", "undetectable")]

    assert odds(0) == pytest.approx([0.2, 0.2 + 0.8 * 0.25, 2.0, 0.0])
    falls[:0] = [{"normal": (5.0, 5.0)}]
    assert odds(99) == pytest.approx([0.2, 0.4, 2.0, 0.0])
    # rates: normal 5 of 10, sensor only 1 of 5, detectable 4 of 5
    assert odds(100) == pytest.approx([0.2 + 0.8 * 0.5 / 0.8, 0.4, 2.0, 0.0])


def test_without_falls_the_odds_stay_and_assigned_scenarios_are_refused():
    training = Training(ratios=(1, 1, 2, 0))
    log = SimpleNamespace(take_counts=lambda: {"normal": (10.0, 0.0)})
    training.env.event_manager.get_term_cfg("faults").func.log = log
    mdp.failure_sampling(SimpleNamespace(params={}), training.env)(training.env, slice(None))
    assert list(training.schedule.ratios.values()) == [1.0, 1.0, 2.0, 0.0]
    with pytest.raises(UmcError, match="leave failure_sampling out"):
        mdp.failure_sampling(SimpleNamespace(params={}), Training(scenario="rom").env)


def test_a_task_whose_curriculum_changes_faults_is_known():
    term = SimpleNamespace(func=mdp.fault_curriculum)
    assert has_fault_curriculum(SimpleNamespace(curriculum=SimpleNamespace(faults=term, other=None)))
    named = SimpleNamespace(func="umc.mdp.curricula:fault_curriculum")  # as Hydra leaves it
    assert has_fault_curriculum(SimpleNamespace(curriculum=SimpleNamespace(faults=named)))
    sampling = SimpleNamespace(func=mdp.failure_sampling)
    assert has_fault_curriculum(SimpleNamespace(curriculum=SimpleNamespace(failures=sampling)))
    assert has_fault_curriculum(SimpleNamespace(curriculum={"failures": sampling, "other": None}))
    own = SimpleNamespace(func=type("own", (mdp.fault_curriculum,), {}))
    assert has_fault_curriculum(SimpleNamespace(curriculum={"own": own}))
    assert not has_fault_curriculum(SimpleNamespace(curriculum=SimpleNamespace(other=None)))
    assert not has_fault_curriculum(SimpleNamespace(curriculum=None))


@pytest.mark.parametrize("ratios", [(1, 0, 0), {"dead+noise": 1.0}])
def test_a_later_stage_that_is_wrong_is_refused_at_the_start(ratios):
    with pytest.raises(UmcError):
        Training(stages=[(0, (1, 0, 0, 0)), (5000, ratios)])


@pytest.mark.parametrize("scenario", ["dead", "effort"])
def test_a_curriculum_of_sensor_faults_alone_reads_no_limits(monkeypatch, scenario):
    read = []

    def writer(asset):
        read.append(asset)
        return SimpleNamespace(nominal=JointLimits(*(torch.full((4,), value) for value in (-1.0, 1.0, 20.0, 10.0))))

    monkeypatch.setattr("umc.mdp.events.JointLimitWriter", writer)
    cfg = UnitreeGo2FlatEnvCfg()
    mdp.add_faults(cfg, severity={"effort": 5.0}, ratios={"normal": 1.0, scenario: 0.0}, num_joints=(1, 2))
    stages = [(0, {"normal": 1.0}), (100, {scenario: 1.0})]
    cfg.curriculum.faults = CurriculumTermCfg(func=mdp.fault_curriculum, params={"stages": stages})
    term = mdp.joint_faults(cfg.events.faults, UnstartedEnv(cfg))
    assert (len(read), term.writer is None) == ((0, True) if scenario == "dead" else (1, False))
    assert (term.source.settings["nominal"] is None) == (scenario == "dead")  # of mild severities


def test_a_curriculum_of_the_users_and_the_replay_of_a_ledger_are_refused():
    cfg = UnitreeGo2FlatEnvCfg()
    mdp.add_faults(cfg, ratios={"dead": 1.0}, num_joints=(1, 2))
    cfg.events.faults.params["replay"] = "ledger.jsonl"
    cfg.curriculum.faults = CurriculumTermCfg(func=mdp.fault_curriculum, params={"stages": STAGES})
    with pytest.raises(UmcError, match="a replay has no curriculum; leave out fault_curriculum"):
        mdp.joint_faults(cfg.events.faults, UnstartedEnv(cfg))


def test_joint_faults_reach_physics_whatever_raises_their_odds(monkeypatch):
    """A function of the user's may call set_ratios; nothing in the cfg says so."""
    written = []

    class Writer:
        def __init__(self, asset):
            self.nominal = JointLimits(*(torch.full((4,), value) for value in (-1.0, 1.0, 20.0, 10.0)))
            self.healthy = JointLimits(*(column.expand(2, 4) for column in vars(self.nominal).values()))

        def restore(self, envs):
            pass

        def write(self, *limits):
            written.append(limits)

    monkeypatch.setattr("umc.mdp.events.JointLimitWriter", Writer)
    cfg = UnitreeGo2FlatEnvCfg()
    severity = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}
    mdp.add_faults(cfg, severity=severity, ratios=(1, 0, 0, 0), num_joints=(1, 2), onset=1)
    env = UnstartedEnv(cfg)
    env.episode_length_buf = torch.zeros(2, dtype=torch.long)
    env.scene["robot"].data = SimpleNamespace(joint_pos=SimpleNamespace(torch=torch.zeros(2, 4)))
    env.scene["robot"].cfg = SimpleNamespace(spawn=None)
    term = mdp.joint_faults(cfg.events.faults, env)
    assert term.writer is None
    term.schedule.set_ratios((0, 0, 0, 1))
    term.reset_faults(slice(None))
    env.episode_length_buf += 1
    term(env, None)
    assert term.state.has_joint_fault.any()
    assert written
