# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""`add_faults` changes the cfgs of tasks outside UMC, before there is a simulation."""

import copy
import math
import pickle
import warnings
from types import SimpleNamespace

import gymnasium as gym
import pytest
import torch
from fault_env import UnstartedEnv
from isaaclab.assets import ArticulationCfg
from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg, ManagerTermBase, ObservationTermCfg, SceneEntityCfg
from isaaclab.sim import UsdFileCfg
from isaaclab.utils.modifiers import ModifierCfg
from isaaclab.utils.noise import NoiseModelWithAdditiveBiasCfg, UniformNoiseCfg
from isaaclab_physx.sim.schemas import PhysxArticulationCfg
from isaaclab_tasks.contrib.velocity.config.spot.flat_env_cfg import SpotFlatEnvCfg
from isaaclab_tasks.core.lift.config.franka.franka_env_cfg import FrankaLiftEnvCfg
from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
from isaaclab_tasks.utils import preset, resolve_presets, resolve_task_config
from umc import mdp
from umc.faults import FaultsCfg, JointLimits
from umc.mdp.physics import prepare_robot
from umc.robots.a1 import A1_CFG
from umc.robots.spawn import SOLVER_POSITION_ITERATIONS, SOLVER_VELOCITY_ITERATIONS
from umc.tasks.a1 import A1Stage2EnvCfg
from umc.utils.errors import UmcError

HYDRA_QUIET = [
    "hydra/job_logging=disabled",
    "hydra/hydra_logging=disabled",
    "hydra.run.dir=.",
    "hydra.output_subdir=null",
]
"""Keeps Hydra, which Isaac Lab asks to compose such overrides, from making folders."""

SEVERITY = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}
HIPS, THIGHS = ".*_hip_joint", ".*_thigh_joint"


def go2(**actions):
    cfg = UnitreeGo2FlatEnvCfg()
    for name, action in actions.items():
        setattr(cfg.actions, name, action)
    return cfg


def add(cfg, **parameters):
    mdp.add_faults(cfg, **{"severity": SEVERITY, **parameters})
    return cfg


def sees(func, **kwargs):
    return ObservationTermCfg(func=func, **kwargs)


def wheel_speed(env, asset_cfg=SceneEntityCfg("robot"), radius=1.0):
    """A task's own observation."""
    return radius * lab.joint_vel(env, asset_cfg)


def joint_heat(env, asset_cfg=SceneEntityCfg("robot")):
    """What no sensor fault concerns."""
    return torch.zeros(1, 12)


class SlowPosition(ManagerTermBase):
    """A task's own observation with a state."""

    def __call__(self, env, asset_cfg=SceneEntityCfg("robot")):
        return lab.joint_pos(env, asset_cfg)


def test_a_stock_task_gets_events_sensors_mask_and_flag_and_keeps_all_else():
    stock, cfg = UnitreeGo2FlatEnvCfg(), add(UnitreeGo2FlatEnvCfg())
    events = vars(cfg.events)
    assert list(events) == ["reset_faults", *vars(stock.events), "faults"]
    assert (events["reset_faults"].func, events["reset_faults"].mode) == (mdp.reset_faults, "reset")
    faults = events["faults"]
    assert (faults.func, faults.mode, faults.interval_range_s) == (mdp.joint_faults, "interval", (0.0, 0.0))
    assert faults.is_global_time
    assert list(vars(cfg.observations)) == ["policy", "joint_mask", "fault_flag"]
    before, after = vars(stock.observations.policy), vars(cfg.observations.policy)
    assert list(before) == list(after)
    changed = {name for name in before if repr(before[name]) != repr(after[name])}
    assert changed == {"joint_pos", "joint_vel", "actions"}
    assert {after[name].func for name in changed} == {mdp.joint_sensor}
    quantities = [after[name].params["quantity"] for name in ("joint_pos", "joint_vel", "actions")]
    assert quantities == ["position", "velocity", "action"]
    assert "command_faults" not in vars(cfg.actions)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda cfg: pickle.loads(pickle.dumps(cfg))])
def test_a_copy_keeps_all_that_was_added(copied):
    cfg = add(UnitreeGo2FlatEnvCfg())
    cfg.detection.delay = 10
    twin = copied(cfg)
    assert repr(twin) == repr(cfg)
    assert twin.detection == cfg.detection
    assert twin.detection is not cfg.detection
    assert list(vars(twin.events)) == list(vars(cfg.events))


def test_a_sensor_keeps_noise_scale_clip_history_joints_and_parameters():
    cfg = go2()
    joints = SceneEntityCfg("robot", joint_names=[HIPS, THIGHS], preserve_order=True)
    cfg.observations.policy.joint_vel = ObservationTermCfg(
        func=wheel_speed,
        params={"asset_cfg": joints, "radius": 0.1},
        noise=UniformNoiseCfg(n_min=-1.5, n_max=1.5),
        scale=0.05,
        clip=(-2.0, 2.0),
        history_length=3,
        flatten_history_dim=False,
    )
    before = copy.deepcopy(cfg.observations.policy.joint_vel)
    add(cfg, quantities={wheel_speed: "velocity"})
    term = cfg.observations.policy.joint_vel
    assert term.noise is None  # Isaac Lab would add it to dead joints, too
    params = {"func": wheel_speed, "noise": before.noise, "quantity": "velocity", "asset_cfg": joints}
    assert term.params == {**params, "func_params": {"radius": 0.1}}
    for kept in ("scale", "clip", "history_length", "flatten_history_dim"):
        assert getattr(term, kept) == getattr(before, kept)


def test_the_mask_has_the_joints_of_the_observations():
    cfg = go2()
    joints = SceneEntityCfg("robot", joint_names=[HIPS])
    for term in (cfg.observations.policy.joint_pos, cfg.observations.policy.joint_vel):
        term.params["asset_cfg"] = joints
    add(cfg)
    assert cfg.observations.joint_mask.mask.params["asset_cfg"].joint_names == [HIPS]
    # terms that differ: all joints
    cfg = go2()
    cfg.observations.policy.joint_pos.params["asset_cfg"] = joints
    assert "asset_cfg" not in add(cfg).observations.joint_mask.mask.params


def test_a_critic_reads_true_values_even_if_it_shared_the_policys_cfg():
    cfg = go2()
    cfg.observations.critic = cfg.observations.policy
    add(cfg)
    assert cfg.observations.critic.joint_pos.func is lab.joint_pos_rel
    assert cfg.observations.policy.joint_pos.func is mdp.joint_sensor
    # unless it is named
    cfg = go2()
    cfg.observations.critic = copy.deepcopy(cfg.observations.policy)
    add(cfg, groups=("policy", "critic"))
    assert cfg.observations.critic.joint_pos.func is mdp.joint_sensor


def action(*joints, **changes):
    return lab.JointPositionActionCfg(asset_name="robot", joint_names=list(joints), **changes)


@pytest.mark.parametrize(
    ("actions", "patterns"),
    [
        ({}, None),  # all joints, in the robot's order
        ({"joint_pos": action(HIPS)}, [f"(?:{HIPS})"]),
        ({"joint_pos": action(HIPS, THIGHS)}, [f"(?:{HIPS})|(?:{THIGHS})"]),  # the robot's order, leg by leg
        ({"joint_pos": action(THIGHS, HIPS, preserve_order=True)}, [THIGHS, HIPS]),
        ({"joint_pos": action(THIGHS), "hips": action(HIPS)}, [f"(?:{THIGHS})", f"(?:{HIPS})"]),
    ],
)
def test_last_actions_belong_to_the_joints_of_the_action_terms(actions, patterns):
    params = add(go2(**actions)).observations.policy.actions.params
    if patterns is None:
        assert "asset_cfg" not in params
    else:
        assert (params["asset_cfg"].joint_names, params["asset_cfg"].preserve_order) == (patterns, True)


def test_a_last_action_by_name_has_that_terms_joints():
    grip = lab.BinaryJointPositionActionCfg(
        asset_name="robot", joint_names=[THIGHS], open_command_expr={}, close_command_expr={}
    )
    cfg = go2(joint_pos=action(HIPS), grip=grip)
    with pytest.raises(UmcError, match="'grip' is no joint action of 'robot'; give each action term"):
        add(cfg)
    cfg.observations.policy.actions.params["action_name"] = "joint_pos"
    cfg.observations.policy.grip = sees(lab.last_action, params={"action_name": "grip"})
    add(cfg)
    assert cfg.observations.policy.actions.params["func_params"] == {"action_name": "joint_pos"}
    assert cfg.observations.policy.actions.params["asset_cfg"].joint_names == [f"(?:{HIPS})"]
    assert cfg.observations.policy.grip.func is lab.last_action


def test_presets_are_changed_in_every_variant_whether_hydra_has_chosen_or_not():
    cfg = SpotFlatEnvCfg()  # its events are a preset by engine
    stock = {name: list(vars(events)) for name, events in vars(cfg.events).items()}
    assert len(stock) > 1
    pos = cfg.observations.policy.joint_pos
    cfg.observations.policy.joint_pos = preset(default=pos, quiet=sees(lab.joint_pos))
    add(cfg)
    for name, events in vars(cfg.events).items():
        assert list(vars(events)) == ["reset_faults", *stock[name], "faults"], name
    for term in vars(cfg.observations.policy.joint_pos).values():
        assert term.func is mdp.joint_sensor
    late = resolve_presets(copy.deepcopy(cfg), ["newton_mjwarp", "quiet"])
    early = resolve_presets(SpotFlatEnvCfg(), ["newton_mjwarp"])
    early.observations.policy.joint_pos = sees(lab.joint_pos)
    assert late.to_dict() == add(early).to_dict()


class FaultyGo2EnvCfg(UnitreeGo2FlatEnvCfg):
    """What a user writes: a subclass of the task's cfg."""

    def __post_init__(self):
        super().__post_init__()
        add(self)


def test_isaac_labs_commands_resolve_such_a_task(monkeypatch):
    limited = SimpleNamespace(nominal=JointLimits(*torch.ones(4, 4)))
    monkeypatch.setattr("umc.mdp.events.JointLimitWriter", lambda asset: limited)
    gym.register("Faulty-Go2", entry_point="", kwargs={"env_cfg_entry_point": f"{__name__}:{FaultyGo2EnvCfg.__name__}"})
    try:
        overrides = ["physics=ovphysx", "env.events.faults.params.num_joints=[1,3]", "env.events.faults.params.seed=5"]
        plain, _ = resolve_task_config("Faulty-Go2", None, overrides=overrides)
        # an override that only Hydra itself understands sends the complete cfg through text
        through_text, _ = resolve_task_config("Faulty-Go2", None, overrides=[*overrides, *HYDRA_QUIET])
    finally:
        del gym.registry["Faulty-Go2"]
    assert isinstance(through_text.observations.policy.joint_pos.params["func"], str)
    with pytest.raises(UmcError, match="already"):  # its functions are names now
        add(through_text)
    for cfg in (plain, through_text):
        assert (type(cfg.sim.physics).__name__, next(iter(vars(cfg.events)))) == ("OvPhysxCfg", "reset_faults")
        assert list(cfg.events.faults.params["num_joints"]) == [1, 3]
        assert cfg.events.faults.params["seed"] == 5
        env = UnstartedEnv(cfg)
        assert mdp.joint_sensor(cfg.observations.policy.joint_pos, env) is not None
        drawn = mdp.joint_faults(cfg.events.faults, env).source.draw(torch.arange(99), torch.zeros(99).long())
        assert set(drawn.joints.sum(-1).flatten().tolist()) == {0, 1, 2, 3}  # healthy, or what the override says


def test_every_parameter_of_the_schedule_arrives():
    schedule = {
        "severity": {"effort": {"fraction": {"uniform": [0.2, 0.5]}}, "dead": 0.5, "noise": {HIPS: 0.1, ".*": 0.2}},
        "ratios": {"mine": 1.0, "noise": 2.0},
        "scenarios": {"mine": {"kinds": ["effort", "dead"], "detected": False}},
        "num_joints": (1, 2),
        "num_faults": (1, 3),
        "onset": [20, 30],
        "duration": (5, 10),
        "period": 7,
        "duty": 0.25,
        "seed": 9,
    }
    params = add(UnitreeGo2FlatEnvCfg(), joint_names=[HIPS], **schedule).events.faults.params
    assert {name: value for name, value in params.items() if name != "asset_cfg"} == schedule
    assert (params["asset_cfg"].name, params["asset_cfg"].joint_names) == ("robot", [HIPS])
    cfg = UnitreeGo2FlatEnvCfg()
    mdp.add_faults(cfg, faults=FaultsCfg(**{**schedule, "seed": 1}, joint_names=[HIPS]), seed=9)
    assert cfg.events.faults.params["seed"] == 9
    assert cfg.to_dict()["events"] == add(UnitreeGo2FlatEnvCfg(), joint_names=[HIPS], **schedule).to_dict()["events"]


def test_commands_that_fail_get_the_term_that_lets_them():
    cfg = add(UnitreeGo2FlatEnvCfg(), scenario=["dropped", 8])
    name, term = list(vars(cfg.actions).items())[-1]
    assert (name, type(term), term.asset_name) == ("command_faults", mdp.CommandFaultsCfg, "robot")
    assert "asset_cfg" not in cfg.observations.policy.actions.params  # it has no action of its own


def test_add_faults_makes_umcs_own_task_of_its_healthy_cfg():
    own, cfg = A1Stage2EnvCfg(), A1Stage2EnvCfg()
    for name, func in (("joint_pos", lab.joint_pos_rel), ("joint_vel", lab.joint_vel_rel), ("last_action", None)):
        term = vars(cfg.observations.policy)[name]
        term.func, term.noise = func or lab.last_action, term.params.get("noise")
        term.params = {}
    schedule = {name: value for name, value in cfg.events.faults.params.items() if name != "asset_cfg"}
    for holder, names in ((cfg.observations, ("joint_mask", "fault_flag")), (cfg.events, ("reset_faults", "faults"))):
        for name in names:
            delattr(holder, name)
    mdp.add_faults(cfg, **schedule)
    assert next(iter(vars(cfg.events))) == next(iter(vars(own.events))) == "reset_faults"
    ours, theirs = cfg.to_dict(), own.to_dict()
    for name in ("joint_pos", "joint_vel", "last_action"):  # what was left to defaults is spelt out
        term = ours["observations"]["policy"][name]["params"]
        assert term.items() >= theirs["observations"]["policy"][name]["params"].items()
        theirs["observations"]["policy"][name]["params"] = term
    assert ours == theirs


def with_policy(**terms):
    cfg = UnitreeGo2FlatEnvCfg()
    vars(cfg.observations.policy).update(terms)
    return cfg


@pytest.mark.parametrize(
    ("cfg", "parameters", "message"),
    [
        (go2, {"asset_name": "dog"}, "the scene has no articulation 'dog'; it has robot"),
        (go2, {"asset_name": "terrain"}, "no articulation 'terrain'"),
        (go2, {"groups": ("actor",)}, "the task has no observation group 'actor'; it has policy"),
        (go2, {"groups": "policy"}, "groups must list observation groups"),
        (go2, {"num_joint": (1, 2)}, "faults have no parameter 'num_joint'"),
        (go2, {"ledger": 3}, "ledger 3 must be the name of a file"),
        (go2, {"severity": {"rom": 1.5}, "scenario": 5}, "severity 1.5 of 'rom' must be above 0 and at most 1"),
        (go2, {"severity": {"rom": {HIPS: 0.5, ".*": 2.0}}, "scenario": 5}, "severity 2 of 'rom'"),
        (go2, {"severity": {"rom": 10**400}, "scenario": 5}, "faults cannot be drawn .* int too large"),
        (go2, {"onset": 1000}, "must lie before the episode's end at step 1000"),
        (lambda: with_policy(joint_pos=None, joint_vel=None, actions=None), {}, "group 'policy' has no joint obs"),
        (lambda: add(go2()), {}, "already"),
        (lambda: with_policy(effort=sees(lab.joint_effort)), {}, "shows joints through joint_effort: set quantities"),
        (go2, {"quantities": {lab.joint_pos_rel: "angle"}}, "shows joints through joint_pos_rel"),
        (lambda: with_policy(joint_pos=sees(lab.joint_pos, modifiers=[ModifierCfg()])), {}, "has modifiers"),
        (
            lambda: with_policy(joint_pos=sees(lab.joint_pos, noise=NoiseModelWithAdditiveBiasCfg())),
            {},
            "'policy/joint_pos' has a noise model with a state",
        ),
        (
            lambda: with_policy(joint_pos=sees(SlowPosition)),
            {"quantities": {SlowPosition: "position"}},
            "'policy/joint_pos': SlowPosition is a class; a sensor that can fail needs a function",
        ),
        (
            lambda: with_policy(actions=sees(lab.last_action, params={"action_name": "arm"})),
            {},
            "asks for the action 'arm', which the task does not have",
        ),
        (dict, {}, "add_faults needs a ManagerBasedRLEnvCfg, not dict"),
        (lambda: preset(default=go2()), {}, "not _Preset; choose with resolve_presets first"),
    ],
)
def test_invalid_input_is_refused_in_one_line_and_changes_nothing(cfg, parameters, message):
    cfg = cfg()
    before = repr(cfg)
    with pytest.raises(UmcError, match=message) as error:
        add(cfg, **parameters)
    assert "\n" not in str(error.value)
    assert repr(cfg) == before


def test_a_pattern_that_matches_no_joint_is_refused_when_the_robot_is_known():
    cfg = add(go2(), joint_names=[".*_knee"])
    env = UnstartedEnv(cfg, ["FL_hip_joint", "FL_calf_joint"])
    cfg.events.faults.params["asset_cfg"].resolve(env.scene)
    with pytest.raises(UmcError, match=r"no joint is named \.\*_knee; the joints are FL_hip_joint, FL_calf_joint"):
        mdp.joint_faults(cfg.events.faults, env)


def test_cases_may_name_joints():
    cases = [
        {"scenario": "effort", "joint_names": [HIPS]},
        {"scenario": "rom", "severity": {"rom": {HIPS: 0.2, ".*": 0.4}}},
        {"scenario": "dead", "joint_groups": {"left": ["[FR]L_.*"], "right": ["[FR]R_.*"]}, "num_joints": (1, 1)},
    ]
    assert add(go2(), cases=cases).events.faults.params["cases"] == cases
    for wrong, message in (
        ({"severity": {"rom": {HIPS: 0.2, ".*": 4.0}}}, "severity 4 of 'rom'"),
        ({"joint_names": "hip"}, "joint_names must list names"),
        ({"joint_groups": {"a": [".*"]}, "num_joints": (1, 2)}, "there are 1 joint groups"),
    ):
        with pytest.raises(UmcError, match=message):
            add(go2(), cases=[{"scenario": "rom"}, wrong])


def test_a_case_may_have_more_joints_than_the_task_where_the_robot_is_known():
    def a1(case):
        cfg = go2()
        cfg.scene.robot = A1_CFG
        return add(cfg, joint_names=[HIPS], num_joints=(1, 2), cases=[{"scenario": "rom"}, {"scenario": "rom", **case}])

    whole = {"joint_names": [".*"], "num_joints": (12, 12)}
    assert a1(whole).events.faults.params["cases"][1] == {"scenario": "rom", **whole}
    for wrong, message in (
        ({"num_joints": (8, 8)}, "max is 8, but there are 4 joints that can fail"),
        ({"joint_names": [".*_knee"]}, r"no joint is named \.\*_knee; the joints are FL_hip_joint"),
        ({"severity": {"rom": {".*_knee": 0.3}}}, r"rom: pattern '\.\*_knee' matches no joint"),
    ):
        with pytest.raises(UmcError, match=message):
            a1(wrong)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"scenario": "rom"}, "rom would have no effect on wheel, which has no limit"),
        ({"cases": [{"scenario": "rom"}]}, "rom would have no effect on wheel"),
        ({"scenario": "derating", "severity": {"derating": 5.0}}, "derating would have no effect on wheel"),
        ({"scenario": "rom", "joint_names": ["knee"]}, None),
        ({"scenario": "effort"}, None),  # a severity alone lets no range get smaller
    ],
)
def test_a_fault_that_would_have_no_effect_is_refused_when_the_limits_are_known(monkeypatch, faults, message):
    limits = ([-1.0, -math.inf], [1.0, math.inf], [20.0, math.inf], [10.0, math.inf])
    nominal = JointLimits(*(torch.tensor(row) for row in limits))
    monkeypatch.setattr("umc.mdp.events.JointLimitWriter", lambda asset: SimpleNamespace(nominal=nominal))
    cfg = add(go2(), num_joints=(1, 1), **faults)
    env = UnstartedEnv(cfg, ["knee", "wheel"])
    if message is not None:
        with pytest.raises(UmcError, match=message):
            mdp.joint_faults(cfg.events.faults, env)
        return
    source = mdp.joint_faults(cfg.events.faults, env).source
    assert source.settings["nominal"] is None  # ledgers are as they were


def reset_to_default():
    return EventTermCfg(func=lab.reset_scene_to_default, mode="reset")


@pytest.mark.parametrize(
    ("change", "starts"),
    [
        (lambda terms: terms, True),
        (
            lambda terms: {
                "none": None,
                "once": EventTermCfg(func=lab.reset_scene_to_default, mode="startup"),
                **terms,
            },
            True,
        ),
        (lambda terms: {**terms, "reset_faults": None}, False),
        (lambda terms: {"faults": terms["faults"]}, False),
        (lambda terms: {"pose": reset_to_default(), **terms}, False),
    ],
    ids=["first", "first of its mode", "none", "alone", "second"],
)
@pytest.mark.parametrize("named", [False, True], ids=["functions", "names"])
def test_the_reset_of_faults_has_to_be_the_first_one(change, starts, named):
    cfg = add(go2(), scenario="dead", num_joints=(1, 1))
    cfg.events.reset_faults.func = "umc.mdp.events:reset_faults" if named else mdp.reset_faults
    faults, cfg.events = cfg.events.faults, change(vars(cfg.events))
    if starts:
        assert mdp.joint_faults(faults, UnstartedEnv(cfg)).state.num_envs == 2
        return
    with pytest.raises(UmcError, match="reset_faults is not the first reset event; put it first"):
        mdp.joint_faults(faults, UnstartedEnv(cfg))


def test_the_imu_of_a_stock_task_can_fail_if_that_is_planned():
    stock, cfg = go2(), add(go2(), scenario="imu_bias+imu_drift", severity={"imu_bias": 0.2, "imu_drift": 0.1})
    before, after = stock.observations.policy, cfg.observations.policy
    for name, quantity in (("base_ang_vel", "angular_velocity"), ("projected_gravity", "gravity")):
        old, new = getattr(before, name), getattr(after, name)
        assert new.func is mdp.imu_sensor
        assert new.noise is None
        assert new.params["quantity"] == quantity
        assert (new.params["func"], repr(new.params["noise"])) == (old.func, repr(old.noise))
    assert list(vars(after)) == list(vars(before))
    assert after.base_lin_vel.func is before.base_lin_vel.func
    assert add(go2()).observations.policy.base_ang_vel.func is before.base_ang_vel.func
    blind = go2()
    blind.observations.policy.base_ang_vel = blind.observations.policy.projected_gravity = None
    with pytest.raises(UmcError, match="show no base_ang_vel, projected_gravity of 'robot'; leave IMU faults out"):
        add(blind, scenario="imu_dead")
    assert not hasattr(blind.observations, "joint_mask")  # unchanged


def gyro(env):
    return env.angular_velocity


def test_an_imu_of_the_users_own_can_fail_if_he_names_its_quantity():
    cfg = go2()
    cfg.observations.policy.base_ang_vel = sees(lab.imu_ang_vel, params={"asset_cfg": SceneEntityCfg("imu")})
    cfg.observations.policy.projected_gravity = sees(gyro, scale=0.2)
    add(cfg, scenario="imu_dead", quantities={lab.imu_ang_vel: "angular_velocity", gyro: "angular_velocity"})
    first, second = cfg.observations.policy.base_ang_vel, cfg.observations.policy.projected_gravity
    assert first.func is second.func is mdp.imu_sensor
    assert first.params["func_params"]["asset_cfg"].name == "imu"
    assert (second.params["func"], second.params["quantity"], second.scale) == (gyro, "angular_velocity", 0.2)
    assert mdp.joint_faults(cfg.events.faults, UnstartedEnv(cfg)).state.num_envs == 2
    planned = add(go2(), scenario="imu_dead", quantities={lab.base_ang_vel: None}).observations.policy
    assert planned.base_ang_vel.func is lab.base_ang_vel
    assert planned.projected_gravity.func is mdp.imu_sensor


def test_groups_are_checked_where_the_names_of_joints_are_unknown_and_known():
    many = {str(number): [".*"] for number in range(300)}  # more than the robot has joints
    assert add(go2(), joint_groups=many, num_joints=(1, 300)).events.faults.params["joint_groups"] == many
    with pytest.raises(UmcError, match="max is 3, but there are 2 joint groups"):
        add(go2(), joint_groups={"a": [".*"], "b": [".*"]}, num_joints=(1, 3))
    with pytest.raises(UmcError, match="joint_groups 3 must be a mapping"):
        add(go2(), joint_groups=3)


def test_terms_without_a_quantity_stay_true():
    cfg = with_policy(effort=sees(lab.joint_effort), heat=sees(joint_heat))
    policy = add(cfg, quantities={lab.joint_effort: None, lab.last_action: None}).observations.policy
    functions = [policy.effort.func, policy.heat.func, policy.actions.func]
    assert functions == [lab.joint_effort, joint_heat, lab.last_action]


ENOUGH = (SOLVER_POSITION_ITERATIONS, SOLVER_VELOCITY_ITERATIONS)


@pytest.mark.parametrize(
    ("iterations", "after"), [((4, 0), ENOUGH), (None, ENOUGH), ((20, 40), (20, 40))], ids=["few", "none", "many"]
)
def test_a_robot_has_enough_physx_iterations_and_keeps_more(iterations, after):
    names = ("solver_position_iteration_count", "solver_velocity_iteration_count")
    before = None if iterations is None else [PhysxArticulationCfg(**dict(zip(names, iterations, strict=True)))]
    spawn = UsdFileCfg(usd_path="robot.usd", articulation_props=before)
    robot = ArticulationCfg(prim_path="/World/Robot", spawn=spawn)
    prepare_robot(robot)
    (found,) = robot.spawn.articulation_props
    assert tuple(getattr(found, name) for name in names) == after
    with pytest.raises(UmcError, match="spawn it from a file"):
        prepare_robot(ArticulationCfg(prim_path="/World/Robot", spawn=None))


def calves(env, asset_cfg: SceneEntityCfg = SceneEntityCfg("robot", joint_names=[".*_calf_joint"])) -> torch.Tensor:
    return env.scene[asset_cfg.name].data.joint_pos.torch[:, asset_cfg.joint_ids]


def test_a_function_whose_default_names_joints_shows_them_alone():
    cfg = go2()
    cfg.observations.policy.joint_pos = ObservationTermCfg(func=calves)
    add(cfg, quantities={calves: "position"}, groups=["policy"])
    assert cfg.observations.policy.joint_pos.params["asset_cfg"].joint_names == [".*_calf_joint"]
    assert cfg.observations.policy.joint_vel.params.get("asset_cfg") is None


def test_an_event_that_is_none_does_not_replace_the_faults():
    cfg = go2()
    cfg.events.reset_faults = None
    assert [name for name, term in vars(add(cfg).events).items() if term is not None and "faults" in name] == [
        "reset_faults",
        "faults",
    ]


def test_unknown_groups_of_the_imu_are_refused():
    cfg = go2()
    cfg.observations.critic = None
    for groups, words in (
        (("policy", "critc"), "no observation group 'critc'; it has policy"),
        (("policy", "critic"), "no observation group 'critic'; it has policy"),
        ("policy", "must list"),
    ):
        with pytest.raises(UmcError, match=words):
            mdp.add_imu_sensors(cfg, groups=groups)


def test_joint_sensors_in_another_group_that_no_fault_reaches_are_named():
    cfg = FrankaLiftEnvCfg()  # its positions are in the group proprio
    with pytest.warns(RuntimeWarning, match="no fault reaches the joint sensors in proprio, and none is in policy; "):
        mdp.add_faults(cfg, scenario="dead")
    assert cfg.observations.proprio.joint_pos.func is not mdp.joint_sensor
    cfg = FrankaLiftEnvCfg()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        true = {lab.joint_pos_rel: None, lab.joint_vel_rel: None}  # as the user wants it
        mdp.add_faults(UnitreeGo2FlatEnvCfg(), scenario="power_loss", quantities=true)
        mdp.add_faults(cfg, scenario="dead", groups=("policy", "proprio"))
    assert cfg.observations.proprio.joint_pos.func is mdp.joint_sensor
