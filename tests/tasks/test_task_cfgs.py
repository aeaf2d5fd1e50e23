# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The tasks as configuration: ids, stages and rewards; the paper's tables are in test_paper_tables.py."""

import dataclasses

import gymnasium as gym
import pytest
from dummy_robot import ROBOTS
from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.managers import SceneEntityCfg
from isaaclab.terrains import TerrainImporterCfg
from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
from umc.evaluation.protocol import protocol_for
from umc.robots import A1_JOINTS
from umc.tasks.bodies import BodyNamesCfg, check_robot
from umc.tasks.parts import feet_of
from umc.tasks.task_cfg import check_groups, resolve_cfgs
from umc.terrains import FLAT_GROUND_CFG
from umc.utils.errors import UmcError


def env_cfg(robot, stage):
    return load_cfg_from_registry(f"UMC-{robot}-Stage{stage}", "env_cfg_entry_point")


@pytest.mark.parametrize("robot", ROBOTS)
def test_stage_1_is_stage_2_without_faults(robot):
    first, second = env_cfg(robot, 1), env_cfg(robot, 2)
    assert first.events.faults.params["ratios"] == (1.0, 0.0, 0.0, 0.0)
    assert second.events.faults.params["ratios"] == (1.0, 1.0, 1.0, 1.0)
    assert second.events.faults.params["severity"].keys() == {"rom", "effort", "velocity"}
    assert first.observations.to_dict() == second.observations.to_dict()
    assert first.actions.to_dict() == second.actions.to_dict()
    assert first.terminations.to_dict() == second.terminations.to_dict()
    weights = [{name: term.weight for name, term in vars(cfg.rewards).items()} for cfg in (first, second)]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("robot", ROBOTS)
def test_limits_are_restored_before_other_resets_and_the_reward_is_clipped_after_all_other_terms(robot):
    cfg = env_cfg(robot, 2)
    resets = [name for name, term in vars(cfg.events).items() if getattr(term, "mode", None) == "reset"]
    assert resets[0] == "reset_faults"
    assert len(resets) > 1
    assert list(vars(cfg.rewards))[-1] == "only_positive"


def test_engines_are_presets_and_newton_is_the_default():
    presets = env_cfg("A1", 1).sim.physics
    names = {field.name for field in dataclasses.fields(presets)}
    assert {"newton_mjwarp", "ovphysx", "isaacsim_physx", "default"} <= names
    assert type(presets.default) is type(presets.newton_mjwarp)


def test_each_robot_has_its_own_figures():
    """docs/rewards.md has the weights (tests/docs/test_rewards.py)."""
    rewards = {robot: env_cfg(robot, 1).rewards for robot in ROBOTS}
    heights = {robot: terms.base_height.params["target_height"] for robot, terms in rewards.items()}
    assert heights == {"A1": 0.3, "Go2": 0.3, "G1": 0.78, "H1": 1.05, "Solo8": 0.24}
    torques = {robot: rewards[robot].torque_limits.params["limit"] for robot in ("A1", "Go2", "Solo8")}
    assert torques == {"A1": 25.0, "Go2": 23.7, "Solo8": 2.5}
    speeds = {robot: env_cfg(robot, 1).commands.base_velocity.ranges.lin_vel_x for robot in torques}
    assert speeds == {"A1": (0.5, 0.5), "Go2": (0.5, 0.5), "Solo8": (0.0, 1.0)}


def test_go2s_faults_are_a1s_scaled_by_weight_and_leg():
    tasks = [env_cfg(robot, 2) for robot in ("A1", "Go2")]
    assert vars(tasks[0].terminations).keys() == vars(tasks[1].terminations).keys()
    a1, go2 = (task.events.faults.params for task in tasks)
    scale = (16.085 * 0.213) / (13.741 * 0.2)  # weight times thigh
    protocols = [protocol_for(robot).severity for robot in ("a1", "go2")]
    for other, severity in ((a1["severity"], go2["severity"]), protocols):
        assert severity == {**other, "effort": pytest.approx(scale * other["effort"], rel=0.04)}
    assert go2["num_joints"] == a1["num_joints"]


def test_a1_walks_on_the_papers_tracks_unless_flat_ground_is_chosen():
    default, perlin, flat = (
        resolve_presets(env_cfg("A1", 2), names).scene.terrain for names in ([], ["perlin"], ["flat"])
    )
    assert default.to_dict() == perlin.to_dict()
    assert flat.to_dict() == FLAT_GROUND_CFG.to_dict()
    for robot in ("Go2", "G1", "H1", "Solo8"):  # by the same word, though they have no other
        for names in ([], ["flat"]):
            terrain = resolve_presets(env_cfg(robot, 2), names).scene.terrain
            assert terrain.to_dict() == FLAT_GROUND_CFG.to_dict()


@pytest.mark.parametrize("robot", ROBOTS)
def test_terms_on_trunk_and_feet_name_the_robots_own(robot):
    cfg = env_cfg(robot, 1)
    cfg.bodies.feet = [f".*{cfg.bodies.feet[0].split('_', 1)[1]}"]  # one pattern
    cfg.validate_config()
    ordered = cfg.scene.robot.body_ordering
    assert tuple(cfg.bodies.feet) == feet_of(cfg) == feet_of(env_cfg(robot, 1))
    assert [body for body in ordered if body in cfg.bodies.feet] == cfg.bodies.feet
    term = cfg.rewards.trot if hasattr(cfg.rewards, "trot") else cfg.rewards.contact_phase
    assert term.params["sensor_cfg"].body_names == cfg.bodies.feet


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("env.bodies.trunk=base", "bodies.trunk: no body of the robot matches 'base'; it has trunk, FL_hip,"),
        ("env.bodies.feet=['.*_foot']", "bodies.feet: no body of the robot matches '.*_foot'; it has trunk, FL_hip,"),
        ("env.bodies.feet=['F._calf']", "rewards.trot needs 4 feet, and its body_names match FL_calf, FR_calf"),
        ("env.rewards.trot.params.sensor_cfg.body_names=(", "rewards.trot.sensor_cfg.body_names: '(' is no regular"),
        ("env.actions.joint_pos.joint_names=['knee']", "actions.joint_pos.joint_names: no joint of the robot matches"),
        ("env.scene.robot.init_state.joint_pos={'knee':0.1}", "joint_pos of the robot's init_state: no joint"),
        (
            "env.scene.robot.joint_ordering=('knee',)",
            "joint_ordering of the robot's cfg: the file has no knee; a1.usda has",
        ),
        ("env.scene.robot.spawn.usd_path=/none/a1.usd", "no robot USD at /none/a1.usd"),
    ],
)
def test_names_that_the_robot_does_not_have_are_refused_before_a_simulation(change, message):
    with pytest.raises(UmcError) as refusal:
        resolve_cfgs("UMC-A1-Stage1", None, [change])
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


MATERIAL = "env.scene.terrain.physics_material"


@pytest.mark.parametrize(
    ("robot", "overrides"),
    [
        ("A1", [f"{MATERIAL}.static_friction=0.9"]),
        ("A1", ["env.scene.terrain=flat", f"{MATERIAL}.dynamic_friction=0.9"]),
        ("Go2", [f"{MATERIAL}.friction_combine_mode=multiply"]),
        ("Go2", [f"{MATERIAL}=null"]),
    ],
    ids=["tracks", "flat", "combination", "none"],
)
def test_a_material_of_the_ground_that_one_engine_alone_would_heed_is_refused(robot, overrides):
    with pytest.raises(UmcError, match=r"env\.scene\.terrain\.physics_material would not act .* env\.events\.friction"):
        resolve_cfgs(f"UMC-{robot}-Stage1", None, overrides)


def test_grounds_of_ones_own_keep_their_material():
    cfg = env_cfg("A1", 1)
    for terrain in (TerrainImporterCfg(prim_path="/World/ground", terrain_type="plane"), None):
        cfg.scene.terrain = terrain
        cfg.validate_config()


POLICY = "env.observations.policy"


def checked(robot, *overrides, agent="mlp"):
    """What training checks of the groups."""
    stage = 1 if agent.startswith("nm_") else 2
    env, cfg = resolve_cfgs(f"UMC-{robot}-Stage{stage}", f"rsl_rl_{agent}_cfg_entry_point", list(overrides))
    check_groups(env, cfg)
    return True


@pytest.mark.parametrize("robot", ROBOTS)
def test_the_joint_mask_hides_the_columns_of_the_joints(robot):
    assert checked(robot, f"{POLICY}.projected_gravity.scale=2.0")
    for override in (f"{POLICY}.command=null", f"{POLICY}.history_length=5"):
        with pytest.raises(UmcError, match="the actor reads joint_pos_rel in columns"):
            checked(robot, override)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (f"{POLICY}.joint_pos.history_length=3", "joint_pos_rel in columns 12 to 23 .* has it in 12 to 47"),
        (f"{POLICY}.joint_vel=null", "joint_vel_rel in columns 24 to 35 of the group policy, and the task lacks it"),
        (f"{POLICY}.joint_vel.history_length=2", "joint_vel_rel in columns 24 to 35 .* has it in 24 to 47"),
        (f"{POLICY}.last_action.history_length=2", "last_action in columns 36 to 47 .* has it in 36 to 59"),
    ],
)
def test_a_changed_joint_term_is_refused_where_a_network_masks_it(override, words):
    with pytest.raises(UmcError, match=words):
        checked("A1", override)
    assert checked("A1", override, agent="nm_mlp")  # masks nothing
    with pytest.raises(UmcError, match=words):
        checked("A1", override, agent="nm_transformer")  # a token per joint


def test_terms_that_move_no_joint_are_free():
    assert checked("A1", f"{POLICY}.history_length=1", f"{POLICY}.joint_vel.clip=[-5.0,5.0]")
    assert checked("A1", f"{POLICY}.base_lin_vel=null", "agent.actor.joint_start=9")
    env, cfg = resolve_cfgs("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point", [])
    env.observations.policy.base_lin_vel.func, env.observations.policy.base_lin_vel.params = len, {}
    check_groups(env, cfg)  # of unknown width
    env.bodies = None  # a task of another package
    env.observations.policy.base_lin_vel = None
    check_groups(env, cfg)


BACKWARDS = list(reversed(A1_JOINTS))


@pytest.mark.parametrize("where", ["actions.joint_pos", "observations.policy.joint_pos"])
def test_joints_in_another_order_than_the_robots_are_refused(where):
    def resolve(joints):
        cfg = env_cfg("A1", 2)
        if where.startswith("actions"):
            cfg.actions.joint_pos.joint_names, cfg.actions.joint_pos.preserve_order = joints, True
        else:
            joints = SceneEntityCfg("robot", joint_names=joints, preserve_order=True)
            cfg.observations.policy.joint_pos.params["asset_cfg"] = joints
        check_robot(cfg)

    resolve(A1_JOINTS)
    resolve(A1_JOINTS[3:])
    with pytest.raises(UmcError, match=f"{where}.*: preserve_order puts the joints in another order"):
        resolve(BACKWARDS)


def test_an_observation_of_what_is_not_in_the_scene_is_refused():
    cfg = env_cfg("A1", 2)
    cfg.observations.policy.joint_pos.params["asset_cfg"] = SceneEntityCfg("ghost")
    with pytest.raises(UmcError, match=r"observations\.policy\.joint_pos\.asset_cfg\.name: the scene has no ghost"):
        check_robot(cfg)


def test_observed_gains_of_actuators_that_the_robot_does_not_have_are_refused():
    cfg = env_cfg("A1", 2)
    legs = cfg.scene.robot.actuators.pop("legs")
    cfg.scene.robot.actuators["implicit"] = ImplicitActuatorCfg(joint_names_expr=[".*"], stiffness=20.0, damping=0.5)
    refused = r"observations\.critic\.physics reads .* actuators {}, and the robot has {}; .*critic\.physics=null"
    with pytest.raises(UmcError, match=refused.format("legs", "actuators implicit")):
        check_robot(cfg)
    cfg.observations.critic.physics.params["actuator"] = "implicit"
    with pytest.raises(UmcError, match=refused.format("implicit", "implicit motors")):
        check_robot(cfg)
    cfg.scene.robot.actuators["own"] = legs
    cfg.observations.critic.physics.params["actuator"] = "own"
    check_robot(cfg)
    cfg.observations.critic.physics = None
    check_robot(cfg)


def test_bodies_that_are_not_set_are_refused_with_those_of_the_robot():
    cfg = env_cfg("A1", 1)
    cfg.bodies = BodyNamesCfg(trunk="trunk")
    with pytest.raises(UmcError, match=r"does not set bodies\.feet; the robot's bodies are trunk, FL_hip"):
        cfg.validate_config()


@pytest.mark.parametrize("severity", ['{"log_uniform":[6.0,80.0]}', '{".*_knee.*":13.0,".*":8.0}'])
def test_a_severity_that_is_a_number_can_become_a_distribution(severity):
    env_cfg, _ = resolve_cfgs("UMC-H1-Stage2", None, [f"env.events.faults.params.severity.effort={severity}"])
    assert isinstance(env_cfg.events.faults.params["severity"]["effort"], dict)


def test_fields_that_a_task_leaves_open_are_named_in_one_line(monkeypatch):
    monkeypatch.setitem(gym.spec("UMC-A1-Stage1").kwargs, "env_cfg_entry_point", "umc.tasks.quadruped:QuadrupedEnvCfg")
    with pytest.raises(
        UmcError, match=r"^the cfg of UMC-A1-Stage1 has to set .*rewards\.torque_limits\.params\.limit.*$"
    ):
        resolve_cfgs("UMC-A1-Stage1", None, [])


def test_names_of_bodies_change_one_task_alone():
    cfg = env_cfg("A1", 1)
    cfg.bodies.trunk = "FL_hip"
    cfg.rewards.trot.params["sensor_cfg"].body_names = ["FL_hip", "FR_hip", "RL_hip", "RR_hip"]
    cfg.validate_config()
    assert cfg.terminations.trunk_contact.params["sensor_cfg"].body_names == "FL_hip"
    assert cfg.rewards.trot.params["sensor_cfg"].body_names[0] == "FL_hip"  # an override stays
    assert env_cfg("A1", 1).terminations.trunk_contact.params["sensor_cfg"].body_names == "trunk|base_link"
    assert env_cfg("Solo8", 1).events.trunk_mass.params["asset_cfg"].body_names == "base_link"
