# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What joint limits do to robots on real engines: every env has its own limits in the one run of each engine."""

import math
from types import SimpleNamespace

import pytest
import torch

TIMEOUT_S = 900.0
"""Longest run of one engine [s]; Newton took 426 s for A1 and G1 on two cores that 18 processes shared."""

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3 * TIMEOUT_S)]

ENGINES = ("newton_mjwarp", "ovphysx")
ROBOTS = ("a1", "g1", "go2", "chain", "drive")
"""Two quadrupeds, a humanoid, a chain of three links on a fixed base, and the same driven by the engine itself."""
LEGGED = ("a1", "g1", "go2")
CHAINS = ("chain", "drive")

ONSET, STIR, END = 50, 70, 650
"""Physics steps to the limits, to violent motion, and to the end of the limits, which is 3 s later."""

SPEED = 3.0
"""Speed limit [rad/s]."""
EFFORT = {"a1": 1.0, "g1": 8.0, "go2": 1.0, "chain": 0.6, "drive": 0.6}
"""Torque limit [N*m]; healthy joints reach at least twice that."""
WINDOW = 0.3
"""Part of the range that a window leaves [-]."""
BEYOND = 0.05
"""How far outside their limits some joints are when limits set in [rad]."""

STILL, SLOW = 0, 1
"""Moving slowly in the air, healthy; and with a speed limit that it never reaches."""
SWING, FAST = 2, 3
"""Swinging in the air, healthy; and with less speed."""
WEAK, LIMP, UNPOWERED = 4, 5, 6
"""Pushed in the air with less torque; with none; with gains of 0."""
NARROW, LOCKED = 7, 8
"""Driven over the full range at 3 Hz in the air, with a window; locked."""
OUTSIDE, OUTSIDE_TWIN = 9, 10
"""Joints beyond their limits in the air: with a window; healthy."""
RUNNER, STUMBLER, STUCK = 11, 12, 13
"""Random actions on the ground with less speed; with a window; locked."""
ENVS = 14

STEP, SKY = 0.005, 100.0
"""Physics step [s]; height of legged robots in the air, where they fall freely [m]."""

AFTER = slice(ONSET, END)


def limited_robots(physics: str, chain: str, names: list, out: str) -> None:
    """Robots live through limits and their end."""
    import umc.utils.patches
    from isaaclab.scene import InteractiveScene
    from isaaclab.sim import SimulationCfg, SimulationContext
    from umc.tasks.base import physics_presets

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    engine = getattr(physics_presets(njmax=500, nconmax=100), physics)
    sim = SimulationContext(SimulationCfg(dt=STEP, physics=engine, device="cpu"))
    scene = InteractiveScene(scene_cfg(chain, names))
    sim.reset()
    scene.reset()
    robots = [LimitedRobot(scene, name) for name in names]
    generator = torch.Generator().manual_seed(0)
    for number in range(END):
        for robot in robots:
            if number == ONSET:
                robot.push_outside()
                robot.limit()
            robot.act(number, generator)
        scene.write_data_to_sim()
        sim.step(render=False)
        scene.update(STEP)
        for robot in robots:
            robot.record()
    for robot in robots:
        robot.writer.restore(torch.ones(ENVS, dtype=torch.bool))
        robot.results["restored"] = not robot.results["unlimited"] and robot.is_healthy()
    if physics == "newton_mjwarp":
        robots[-1].results["as official"] = robots[-1].compare_with_official_writers(sim)
    logs = {
        robot.name: robot.results | {key: torch.stack(values) for key, values in robot.log.items()} for robot in robots
    }
    torch.save(logs, out)


def scene_cfg(chain: str, names: list):
    from isaaclab.actuators import IdealPDActuatorCfg, ImplicitActuatorCfg
    from isaaclab.assets import ArticulationCfg
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab.sim import UsdFileCfg
    from umc.robots import A1_CFG, G1_CFG, GO2_CFG
    from umc.terrains import FLAT_GROUND_CFG

    push = {"joint_names_expr": [".*"], "stiffness": 20.0, "damping": 0.5, "armature": 0.01}
    motors = {
        "chain": IdealPDActuatorCfg(actuator_effort_limit=20.0, actuator_velocity_limit=30.0, **push),
        "drive": ImplicitActuatorCfg(joint_effort_limit=20.0, joint_velocity_limit=30.0, **push),
    }
    cfg = InteractiveSceneCfg(num_envs=ENVS, env_spacing=12.0)
    cfg.terrain = FLAT_GROUND_CFG.copy()
    if "a1" in names:
        cfg.a1 = A1_CFG.replace(prim_path="{ENV_REGEX_NS}/A1")
    if "g1" in names:
        cfg.g1 = G1_CFG.replace(prim_path="{ENV_REGEX_NS}/G1")
        cfg.g1.init_state.pos = (0.0, 3.0, 0.8)
    if "go2" in names:
        cfg.go2 = GO2_CFG.replace(prim_path="{ENV_REGEX_NS}/Go2")
    for number, (name, motor) in enumerate(motors.items()):
        if name in names:
            robot = ArticulationCfg(
                prim_path="{ENV_REGEX_NS}/" + name,
                spawn=UsdFileCfg(usd_path=chain, articulation_props=A1_CFG.spawn.articulation_props),
                actuators={"all": motor},
                init_state=ArticulationCfg.InitialStateCfg(pos=(0.0, -3.0 - 2.0 * number, 2.0)),
            )
            robot.soft_joint_pos_limit_factor = 0.9
            setattr(cfg, name, robot)
    return cfg


class LimitedRobot:
    """One robot in all envs."""

    def __init__(self, scene, name: str) -> None:
        from umc.mdp.physics import JointLimitWriter

        self.name, self.robot = name, scene[name]
        self.data, self.count = self.robot.data, self.robot.num_joints
        self.writer = JointLimitWriter(self.robot)
        data = self.data
        if name in LEGGED:
            pose = data.default_root_pose.torch.clone()
            pose[:, :3] += scene.env_origins
            pose[:RUNNER, 2] += SKY
            self.robot.write_root_pose_to_sim_index(root_pose=pose)
            self.robot.write_root_velocity_to_sim_index(root_velocity=data.default_root_vel.torch.clone())
        self.robot.write_joint_position_to_sim_index(position=data.default_joint_pos.torch.clone())
        self.robot.write_joint_velocity_to_sim_index(velocity=data.default_joint_vel.torch.clone())
        self.default, self.healthy = data.default_joint_pos.torch.clone(), self.properties()
        limits = data.joint_pos_limits.torch
        self.middle, self.half = limits.mean(-1), (limits[..., 1] - limits[..., 0]) / 2
        self.faulty = torch.zeros(self.count, dtype=torch.bool)
        self.faulty[[1, 2, self.count // 2, self.count - 1] if name in LEGGED else slice(None)] = True
        self.wander = torch.zeros(ENVS, self.count)
        self.log = {key: [] for key in ("q", "v", "torque", "momentum", "limits")}
        self.results = {"faulty": self.faulty, "range": 2 * self.half[0]}

    def properties(self) -> list:
        data = self.data
        shown = (data.joint_pos_limits, data.soft_joint_pos_limits, data.default_joint_pos, data.joint_vel_limits)
        return [array.torch.clone() for array in shown] + [x.clone() for x in vars(self.writer.healthy).values()]

    def is_healthy(self) -> bool:
        return all(map(torch.equal, self.properties(), self.healthy))

    def push_outside(self) -> None:
        """Some joints are beyond their limits when the window sets in."""
        position = self.data.joint_pos.torch.clone()
        outside = torch.where(self.faulty, self.middle + self.half + BEYOND, position)
        ids = torch.tensor([OUTSIDE, OUTSIDE_TWIN], dtype=torch.int32)
        self.robot.write_joint_position_to_sim_index(position=outside[ids], env_ids=ids)
        self.robot.write_joint_velocity_to_sim_index(velocity=torch.zeros(2, self.count), env_ids=ids)

    def limit(self) -> None:
        from isaaclab.actuators.newton import write_group_parameter
        from umc.faults.kinds import JointLimits, rom_window

        limits = JointLimits(*(value.clone() for value in vars(self.writer.healthy).values()))
        q = self.data.joint_pos.torch
        window = rom_window(limits.lower, limits.upper, q, torch.full_like(q, WINDOW), torch.full_like(q, 0.5))
        for env in (NARROW, OUTSIDE, STUMBLER, LOCKED, STUCK):
            lower, upper = (q, q) if env in (LOCKED, STUCK) else window
            limits.lower[env] = torch.where(self.faulty, lower[env], limits.lower[env])
            limits.upper[env] = torch.where(self.faulty, upper[env], limits.upper[env])
        limits.effort[WEAK, self.faulty] = EFFORT[self.name]
        limits.effort[LIMP, self.faulty] = 0.0
        for env in (SLOW, FAST, RUNNER):
            limits.velocity[env, self.faulty] = SPEED
        if self.name != "drive":
            group = next(iter(self.robot.actuators))
            for gain in ("kp", "kd"):
                ids, joints = torch.tensor([UNPOWERED]), self.faulty.nonzero().squeeze(1)
                zeros = torch.zeros(1, len(joints))
                write_group_parameter(self.robot.actuators, group, "controller", gain, zeros, ids, joints)
        self.writer.write(limits, torch.arange(ENVS) != STILL)
        mass = self.data.mass_matrix.torch[:, -self.count :, -self.count :]
        self.results |= {"mass": mass.clone(), "armature": self.data.joint_armature.torch.clone()}
        self.results["unlimited"] = self.is_healthy()

    def act(self, number: int, generator: torch.Generator) -> None:
        time = number * STEP
        target = self.default + 0.2 * math.sin(2 * math.pi * time)
        target[[SWING, FAST]] = self.default[0] + 0.5 * math.sin(4 * math.pi * time)
        if number >= ONSET:
            target[[WEAK, LIMP, UNPOWERED]] = self.default[0] + 1.0
        if number >= STIR:
            everywhere = (self.middle + self.half * math.sin(6 * math.pi * time))[0]
            target[[NARROW, LOCKED]] = torch.where(self.faulty, everywhere, target[STILL])
            target[[WEAK, LIMP, UNPOWERED]] = self.default[0] + math.sin(4 * math.pi * time)
        if number % 4 == 0:
            self.wander = 0.8 * self.wander + 0.3 * torch.randn(ENVS, self.count, generator=generator)
        target[RUNNER:] = (self.default + self.wander)[RUNNER:]
        self.robot.actuators.target_command.set_position_index(value=target)

    def record(self) -> None:
        data = self.data
        mass = data.body_mass.torch
        arrays = (data.joint_pos, data.joint_vel, self.robot.actuators.applied_effort, data.joint_pos_limits)
        for key, array in zip(("q", "v", "torque", "limits"), arrays, strict=True):
            self.log[key].append(array.torch.clone())
        momentum = (data.body_com_lin_vel_w.torch * mass.unsqueeze(-1)).sum(1) / mass.sum(1, keepdim=True)
        self.log["momentum"].append(momentum)

    def compare_with_official_writers(self, sim) -> bool:
        """Whether Newton gets the same from Isaac Lab's writers, which notify the solver at the next step."""
        from isaaclab_newton.physics import NewtonManager
        from umc.faults.kinds import JointLimits

        def solver_arrays() -> list:
            model, solver, data = NewtonManager.get_model(), NewtonManager._solver.mjw_model, self.data
            names = ("jnt_range", "jnt_actfrcrange", "jnt_solref", "jnt_solimp", "jnt_margin", "dof_invweight0")
            arrays = [model.joint_limit_lower, model.joint_limit_upper, model.joint_effort_limit]
            arrays += [getattr(solver, name) for name in names]
            shown = [data.joint_pos_limits.torch, data.soft_joint_pos_limits.torch, data.joint_effort_limits.torch]
            return [array.numpy().copy() for array in (*arrays, *shown)]

        env, limits = torch.tensor([2], dtype=torch.int32), self.writer.healthy
        lower, upper, effort = limits.lower.clone(), limits.upper.clone(), limits.effort.clone()
        lower[2], upper[2] = 0.8 * lower[2], 0.7 * upper[2]
        if self.name == "drive":
            effort[2] = 5.0
        self.writer.write(JointLimits(lower, upper, effort, limits.velocity), torch.arange(ENVS) == 2)
        ours = solver_arrays()
        self.writer.restore(torch.ones(ENVS, dtype=torch.bool))
        both = torch.stack((lower, upper), dim=-1)[2:3]
        self.robot.write_joint_position_limit_to_sim_index(limits=both, env_ids=env, warn_limit_violation=False)
        self.robot.write_joint_effort_limit_to_sim_index(limits=effort[2:3], env_ids=env)
        sim.step(render=False)
        return all((a == b).all() for a, b in zip(ours, solver_arrays(), strict=True))


@pytest.fixture(scope="module")
def measured(run_engine, chain_usd, tmp_path_factory):
    """The log of a robot on an engine; robots of a run get theirs at once."""
    out, found = tmp_path_factory.mktemp("limits") / "log.pt", {}
    # on Newton 36 degrees of freedom make the solver's Jacobians sparse, 6 dense
    runs = {
        "newton_mjwarp": (("a1", "g1"), ("go2",), CHAINS),
        "ovphysx": (("a1", "g1", *CHAINS), ("go2",)),
    }

    def log(engine, robot):
        if (engine, robot) not in found:
            (names,) = (names for names in runs[engine] if robot in names)
            about = {"chain": chain_usd, "names": names, "out": str(out)}
            run_engine(limited_robots, physics=engine, timeout=TIMEOUT_S, **about)
            for name, logged in torch.load(out, weights_only=True).items():
                found[engine, name] = SimpleNamespace(newton=engine == "newton_mjwarp", robot=name, **logged)
        return found[engine, robot]

    return log


def on_engines(robots):
    """A fixture: the log of each of some robots on each engine."""

    def log(request, measured):
        return measured(*request.param)

    return pytest.fixture(params=[(engine, robot) for engine in ENGINES for robot in robots], ids="-".join)(log)


log = on_engines(ROBOTS)
chain_log = on_engines(CHAINS)
legged_log = on_engines(LEGGED)


def outside(log) -> torch.Tensor:
    """How far joints are out of their limits [rad]."""
    return torch.maximum(log.q - log.limits[..., 1], log.limits[..., 0] - log.q)[..., log.faulty]


def reach(q: torch.Tensor) -> float:
    """Range of motion of the joint that moves least [rad]."""
    return float((q.amax(0) - q.amin(0)).min())


def test_torque_stays_below_the_fault_limit(log):
    torque, cap = log.torque[AFTER][..., log.faulty].abs().amax((0, 2)), EFFORT[log.robot]
    assert torque[SWING] > 2 * cap
    assert torque[WEAK] <= 1.001 * cap
    assert torque[LIMP] == 0.0


def test_accelerations_follow_from_the_limited_torque(chain_log):
    """Only of fixed bases: a base that moves takes part of the acceleration."""
    log = chain_log
    gained = log.v[ONSET] - log.v[ONSET, LIMP]
    pull = (torch.einsum("eij,ej->ei", log.mass, gained) + log.armature * gained) / STEP
    # Newton integrates the damping of its own drives implicitly, beside the torque that the cap cuts
    share = 0.15 if log.newton and log.robot == "drive" else 1e-3
    assert pull[WEAK, log.faulty].tolist() == pytest.approx([EFFORT[log.robot]] * 3, rel=share)


def test_a_joint_without_power_moves_as_one_without_gains(log):
    if log.robot != "drive":
        assert (log.q[ONSET:STIR, LIMP] - log.q[ONSET:STIR, UNPOWERED]).abs().max() < 1e-4
    assert reach(log.q[AFTER, LIMP][:, log.faulty]) > 0.2


def test_a_joint_stays_inside_its_window(log):
    lower, upper = log.limits[ONSET, NARROW].unbind(-1)
    width = ((upper - lower) / log.range)[log.faulty].tolist()
    assert width == pytest.approx([WINDOW] * len(width), rel=1e-4)
    assert reach(log.q[AFTER, NARROW][:, log.faulty]) > 0.1  # it does move
    # a bare chain that whips at 15 rad/s gets further into PhysX's limits than a robot's leg does; Go2's 0.013
    most = 0.05 if log.newton else 0.005 if log.robot in ("a1", "g1") else 0.02
    assert outside(log)[AFTER][:, [NARROW, STUMBLER]].max() < most


def test_a_locked_joint_stays_where_it_is(log):
    # measured on PhysX: 0.002 (A1), 0.006 (G1, impacts of an ankle on the ground), 0.012 (Go2), 0.001 (chains)
    most = 0.05 if log.newton else {"g1": 0.01, "go2": 0.02}.get(log.robot, 0.005)
    moved = (log.q[AFTER] - log.q[ONSET - 1])[..., log.faulty].abs()
    assert moved[:, [LOCKED, STUCK]].max() < most


def test_limits_set_in_without_a_kick_and_change_no_slow_motion(log):
    assert log.q.isfinite().all()
    assert log.v.isfinite().all()
    jump = log.v[ONSET] - log.v[ONSET - 1]
    assert (jump[[SLOW, NARROW]] - jump[STILL]).abs().max() < 1e-3
    # what stops a locked joint speeds no other up
    assert (log.v[ONSET, LOCKED].abs() - log.v[ONSET - 1, LOCKED].abs()).max() < 1.0
    assert (log.q[AFTER, SLOW] - log.q[AFTER, STILL]).abs().max() < 1e-4  # motion below a speed limit is unchanged


def test_a_joint_outside_its_window_is_pushed_no_harder_than_before(log):
    first = slice(ONSET, ONSET + 4)
    assert (log.v[first, OUTSIDE] - log.v[first, OUTSIDE_TWIN]).abs().max() < 1e-3
    assert outside(log)[STIR:END, OUTSIDE].max() < (0.05 if log.newton else 0.02)


def test_speed_stays_below_its_limit(log):
    speed = log.v[AFTER][..., log.faulty].abs()
    assert speed[:, SWING].max() > 2 * SPEED
    for env in (FAST, RUNNER):
        assert (speed[:, env] > 1.1 * SPEED).float().mean() < 0.01
        assert speed[:, env].max() < 1.5 * SPEED
    fast = speed[:, FAST]
    assert fast[fast > 0.8 * SPEED].median() > 0.95 * SPEED  # it limits, it does not stop


def test_limits_add_no_momentum(legged_log):
    """Chains hang from the world."""
    log = legged_log
    free_fall = torch.tensor([0.0, 0.0, -9.81]) * torch.arange(len(log.q)).view(-1, 1, 1) * STEP
    momentum = log.momentum - free_fall
    drift = (momentum[AFTER] - momentum[ONSET - 1]).norm(dim=-1).amax(0)
    for env in (SLOW, LOCKED) if log.newton else (SLOW, LOCKED, FAST, WEAK, LIMP, NARROW):
        assert drift[env] < 0.05
    # Newton's own integration: a healthy G1 that swings its legs drifts by 0.046 m/s in 3 s, without gains by 1.6 m/s
    for env, healthy in ((FAST, SWING), (LIMP, UNPOWERED)):
        assert drift[env] < 0.05 + drift[healthy]


def test_the_end_of_limits_restores_to_the_bit(log):
    assert log.restored


@pytest.mark.parametrize("robot", ["g1", "drive"])
def test_newton_gets_what_the_official_writers_write(measured, robot):
    assert getattr(measured("newton_mjwarp", robot), "as official")
