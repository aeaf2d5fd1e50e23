# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What joint limits do to robots on real engines: every env has its own limits in the one run of each engine."""

import math

import pytest

pytestmark = pytest.mark.engine

ENGINES = ("newton_mjwarp", "ovphysx")
ROBOTS = ("a1", "g1", "chain", "drive")
"""A quadruped, a humanoid, a chain of three links on a fixed base, and the same chain driven by the engine itself."""
LEGGED = ("a1", "g1")
CHAINS = ("chain", "drive")

ONSET, STIR, END = 50, 70, 650
"""Physics steps to the limits, to violent motion, and to the end of the limits, which is 3 s later."""

SPEED = 3.0
"""Speed limit [rad/s]."""
EFFORT = {"a1": 1.0, "g1": 8.0, "chain": 0.6, "drive": 0.6}
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


def limited_robots(physics: str, chain: str, names: list) -> dict:
    """Robots live through limits and their end."""
    import torch
    import umc.utils.patches
    from isaaclab.actuators import IdealPDActuatorCfg, ImplicitActuatorCfg
    from isaaclab.actuators.newton import write_group_parameter
    from isaaclab.assets import ArticulationCfg
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg, SimulationContext, UsdFileCfg
    from umc.faults.kinds import JointLimits, rom_window
    from umc.mdp.physics import JointLimitWriter
    from umc.robots import A1_CFG, G1_CFG
    from umc.tasks.base import physics_presets
    from umc.terrains import FLAT_GROUND_CFG

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    step, sky, gravity = 0.005, 100.0, torch.tensor([0.0, 0.0, -9.81])
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
    for number, (name, motor) in enumerate(motors.items()):
        if name not in names:
            continue
        spawn = UsdFileCfg(usd_path=chain, articulation_props=A1_CFG.spawn.articulation_props)
        hanging = ArticulationCfg.InitialStateCfg(pos=(0.0, -3.0 - 2.0 * number, 2.0))
        prim_path = "{ENV_REGEX_NS}/" + name
        chain_cfg = ArticulationCfg(prim_path=prim_path, spawn=spawn, actuators={"all": motor}, init_state=hanging)
        chain_cfg.soft_joint_pos_limit_factor = 0.9
        setattr(cfg, name, chain_cfg)
    engine = getattr(physics_presets(njmax=500, nconmax=100), physics)
    sim = SimulationContext(SimulationCfg(dt=step, physics=engine, device="cpu"))
    scene = InteractiveScene(cfg)
    sim.reset()
    scene.reset()
    generator = torch.Generator().manual_seed(0)

    class Part:
        """One robot in all envs."""

        def __init__(self, name: str) -> None:
            self.name, self.robot = name, scene[name]
            self.data, self.count = self.robot.data, self.robot.num_joints
            self.writer = JointLimitWriter(self.robot)
            if name in LEGGED:
                pose = self.data.default_root_pose.torch.clone()
                pose[:, :3] += scene.env_origins
                pose[:RUNNER, 2] += sky
                self.robot.write_root_pose_to_sim_index(root_pose=pose)
                self.robot.write_root_velocity_to_sim_index(root_velocity=self.data.default_root_vel.torch.clone())
            self.robot.write_joint_position_to_sim_index(position=self.data.default_joint_pos.torch.clone())
            self.robot.write_joint_velocity_to_sim_index(velocity=self.data.default_joint_vel.torch.clone())
            self.default, self.healthy = self.data.default_joint_pos.torch.clone(), self.properties()
            limits = self.data.joint_pos_limits.torch
            self.middle, self.half = limits.mean(-1), (limits[..., 1] - limits[..., 0]) / 2
            self.faulty = torch.zeros(self.count, dtype=torch.bool)
            self.faulty[[1, 2, self.count // 2, self.count - 1] if name in LEGGED else slice(None)] = True
            self.wander = torch.zeros(ENVS, self.count)
            self.log = {key: [] for key in ("q", "v", "torque", "momentum", "limits")}

        def properties(self) -> dict:
            data, healthy = self.data, self.writer.healthy
            shown = (data.joint_pos_limits, data.soft_joint_pos_limits, data.default_joint_pos, data.joint_vel_limits)
            return {
                "shown": [array.torch.clone() for array in shown],
                **{k: v.clone() for k, v in vars(healthy).items()},
            }

        def unchanged(self) -> bool:
            now = self.properties()
            same = [torch.equal(a, b) for a, b in zip(now.pop("shown"), self.healthy["shown"], strict=True)]
            return all(same) and all(torch.equal(value, self.healthy[key]) for key, value in now.items())

        def push_outside(self) -> None:
            """Some joints are beyond their limits when the window sets in."""
            position = self.data.joint_pos.torch.clone()
            outside = torch.where(self.faulty, self.middle + self.half + BEYOND, position)
            ids = torch.tensor([OUTSIDE, OUTSIDE_TWIN], dtype=torch.int32)
            self.robot.write_joint_position_to_sim_index(position=outside[ids], env_ids=ids)
            self.robot.write_joint_velocity_to_sim_index(velocity=torch.zeros(2, self.count), env_ids=ids)

        def limit(self) -> None:
            healthy = self.writer.healthy
            limits = JointLimits(**{key: value.clone() for key, value in vars(healthy).items()})
            q = self.data.joint_pos.torch
            fraction, placement = torch.full_like(q, WINDOW), torch.full_like(q, 0.5)
            window = rom_window(limits.lower, limits.upper, q, fraction, placement)
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

        def act(self, number: int) -> None:
            time = number * step
            target = self.default + 0.2 * math.sin(2 * math.pi * time)
            target[[SWING, FAST]] = self.default[0] + 0.5 * math.sin(4 * math.pi * time)
            if number >= ONSET:
                target[[WEAK, LIMP, UNPOWERED]] = self.default[0] + 1.0
            if number >= STIR:
                everywhere = (self.middle + self.half * math.sin(6 * math.pi * time))[0]
                target[[NARROW, LOCKED]] = torch.where(self.faulty, everywhere, target[STILL])
                target[[WEAK, LIMP, UNPOWERED]] = self.default[0] + math.sin(4 * math.pi * time)
            if number % 4 == 0:
                noise = torch.randn(ENVS, self.count, generator=generator)
                self.wander = 0.8 * self.wander + 0.3 * noise
            target[RUNNER:] = (self.default + self.wander)[RUNNER:]
            self.robot.actuators.target_command.set_position_index(value=target)

        def note(self) -> None:
            data = self.data
            mass = data.body_mass.torch
            momentum = (data.body_com_lin_vel_w.torch * mass.unsqueeze(-1)).sum(1) / mass.sum(1, keepdim=True)
            torque = self.robot.actuators.applied_effort
            arrays = (data.joint_pos, data.joint_vel, torque, data.joint_pos_limits)
            for key, array in zip(("q", "v", "torque", "limits"), arrays, strict=True):
                self.log[key].append(array.torch.clone())
            self.log["momentum"].append(momentum)

        def report(self) -> dict:
            log = {key: torch.stack(values) for key, values in self.log.items()}
            q, v, joints, after = log["q"], log["v"], self.faulty, slice(ONSET, END)
            over = torch.maximum(q - log["limits"][..., 1], log["limits"][..., 0] - q)[after][..., joints]
            locked = (q[after] - q[ONSET - 1])[..., joints].abs()
            jump = v[ONSET] - v[ONSET - 1]
            free_fall = gravity * torch.arange(len(q)).view(-1, 1, 1) * step
            drift = ((log["momentum"] - free_fall)[after] - log["momentum"][ONSET - 1] + free_fall[ONSET - 1]).norm(
                dim=-1
            )
            gained = v[ONSET] - v[ONSET, LIMP]
            mass = self.mass_matrix[:, -self.count :, -self.count :]
            pull = (torch.einsum("eij,ej->ei", mass, gained) + self.data.joint_armature.torch * gained) / step

            width = log["limits"][ONSET, NARROW, :, 1] - log["limits"][ONSET, NARROW, :, 0]

            def speed(env: int) -> dict:
                faulty = v[after, env][:, joints].abs()
                quick = faulty[faulty > 0.8 * SPEED]
                return {
                    "max": float(faulty.max()),
                    "above 1.1": float((faulty > 1.1 * SPEED).float().mean()),
                    "median of the fast": float(quick.median()) if len(quick) else 0.0,
                }

            return {
                "finite": bool(torch.isfinite(q).all() and torch.isfinite(v).all()),
                "torque": {name: float(log["torque"][after, e][:, joints].abs().max()) for name, e in
                           (("weak", WEAK), ("limp", LIMP), ("swing", SWING))},
                "pull": pull[WEAK, joints].tolist(),
                "free": float((q[ONSET:STIR, LIMP] - q[ONSET:STIR, UNPOWERED]).abs().max()),
                "swings": float((q[after, LIMP].amax(0) - q[after, LIMP].amin(0))[joints].min()),
                "overshoot": {"air": float(over[:, NARROW].max()), "ground": float(over[:, STUMBLER].max())},
                "width": (width / (2 * self.half[0]))[joints].tolist(),
                "roams": float((q[after, NARROW].amax(0) - q[after, NARROW].amin(0))[joints].min()),
                "locked": {"air": float(locked[:, LOCKED].max()), "ground": float(locked[:, STUCK].max())},
                "kick": {name: float((jump[e] - jump[STILL]).abs().max()) for name, e in
                         (("slow", SLOW), ("narrow", NARROW))},
                "stop": float((v[ONSET, LOCKED].abs() - v[ONSET - 1, LOCKED].abs()).max()),
                "outside": {
                    "apart": float((v[ONSET : ONSET + 4, OUTSIDE] - v[ONSET : ONSET + 4, OUTSIDE_TWIN]).abs().max()),
                    "at first": float(over[0, OUTSIDE].max()),
                    "at last": float(over[STIR - ONSET :, OUTSIDE].max()),
                },
                "speed": {"air": speed(FAST), "ground": speed(RUNNER), "healthy": speed(SWING)},
                "apart": float((q[after, SLOW] - q[after, STILL]).abs().max()),
                "drift": {name: float(drift[:, e].max()) for name, e in
                          (("still", STILL), ("swing", SWING), ("fast", FAST), ("narrow", NARROW), ("locked", LOCKED))},
                "restored": self.restored,
            }  # fmt: skip

    parts = [Part(name) for name in names]
    for number in range(END):
        for part in parts:
            if number == ONSET:
                part.push_outside()
                part.limit()
                part.mass_matrix = part.data.mass_matrix.torch.clone()
                part.broken = not part.unchanged()
            part.act(number)
        scene.write_data_to_sim()
        sim.step(render=False)
        scene.update(step)
        for part in parts:
            part.note()
    for part in parts:
        part.writer.restore(torch.ones(ENVS, dtype=torch.bool))
        part.restored = part.broken and part.unchanged()
    said = {part.name: part.report() for part in parts}
    if physics == "newton_mjwarp":
        from isaaclab_newton.physics import NewtonManager

        def solver_arrays(part: Part) -> list:
            model, solver, data = NewtonManager.get_model(), NewtonManager._solver.mjw_model, part.data
            names = ("jnt_range", "jnt_actfrcrange", "jnt_solref", "jnt_solimp", "jnt_margin", "dof_invweight0")
            arrays = [model.joint_limit_lower, model.joint_limit_upper, model.joint_effort_limit]
            arrays += [getattr(solver, name) for name in names]
            shown = [data.joint_pos_limits.torch, data.soft_joint_pos_limits.torch, data.joint_effort_limits.torch]
            return [array.numpy().copy() for array in arrays] + [array.numpy().copy() for array in shown]

        # the same limits by Isaac Lab's own writers, which notify the solver of all worlds at the next step
        part, env = parts[-1], torch.tensor([2], dtype=torch.int32)
        limits = part.writer.healthy
        lower, upper, effort = limits.lower.clone(), limits.upper.clone(), limits.effort.clone()
        lower[2], upper[2] = 0.8 * lower[2], 0.7 * upper[2]
        if part.name == "drive":
            effort[2] = 5.0
        part.writer.write(JointLimits(lower, upper, effort, limits.velocity), torch.arange(ENVS) == 2)
        ours = solver_arrays(part)
        part.writer.restore(torch.ones(ENVS, dtype=torch.bool))
        both = torch.stack((lower, upper), dim=-1)[2:3]
        part.robot.write_joint_position_limit_to_sim_index(limits=both, env_ids=env, warn_limit_violation=False)
        part.robot.write_joint_effort_limit_to_sim_index(limits=effort[2:3], env_ids=env)
        sim.step(render=False)
        theirs = solver_arrays(part)
        said[part.name]["as official"] = [bool((a == b).all()) for a, b in zip(ours, theirs, strict=True)]
    return said


@pytest.fixture(scope="module")
def measured(run_engine, chain_usd):
    # on Newton 36 degrees of freedom make the solver's Jacobians sparse, 6 dense
    together = {"newton_mjwarp": (LEGGED, CHAINS), "ovphysx": (ROBOTS,)}
    return {
        engine: {
            name: said
            for names in groups
            for name, said in run_engine(limited_robots, physics=engine, chain=chain_usd, names=names).items()
        }
        for engine, groups in together.items()
    }


def on_engines(robots):
    """A fixture: what was measured of each of some robots on each engine."""

    def results(request, measured):
        engine, robot = request.param
        return {"newton": engine == "newton_mjwarp", "robot": robot, **measured[engine][robot]}

    return pytest.fixture(params=[(engine, robot) for engine in ENGINES for robot in robots], ids="-".join)(results)


said = on_engines(ROBOTS)
said_of_chains = on_engines(CHAINS)
said_of_legged = on_engines(LEGGED)


def test_torque_stays_below_the_fault_limit(said):
    torque, cap = said["torque"], EFFORT[said["robot"]]
    assert torque["swing"] > 2 * cap
    assert torque["weak"] <= 1.001 * cap
    assert torque["limp"] == 0.0


def test_accelerations_follow_from_the_limited_torque(said_of_chains):
    """Only of fixed bases: a base that moves takes part of the acceleration."""
    said = said_of_chains
    # Newton integrates the damping of its own drives implicitly, beside the torque that the cap cuts
    share = 0.15 if said["newton"] and said["robot"] == "drive" else 1e-3
    assert said["pull"] == pytest.approx([EFFORT[said["robot"]]] * 3, rel=share)


def test_a_joint_without_power_moves_as_one_without_gains(said):
    if said["robot"] != "drive":
        assert said["free"] < 1e-4
    assert said["swings"] > 0.2


def test_a_joint_stays_inside_its_window(said):
    assert said["width"] == pytest.approx([WINDOW] * len(said["width"]), rel=1e-4)
    assert said["roams"] > 0.1  # it does move
    # a bare chain that whips at 15 rad/s gets further into PhysX's limits than a robot's leg does
    most = 0.05 if said["newton"] else 0.005 if said["robot"] in LEGGED else 0.02
    assert max(said["overshoot"].values()) < most


def test_a_locked_joint_stays_where_it_is(said):
    # measured on PhysX: 0.002 (A1), 0.006 (G1, blows of the ground on an ankle), 0.001 (chains)
    most = 0.05 if said["newton"] else 0.01 if said["robot"] == "g1" else 0.005
    assert max(said["locked"].values()) < most


def test_limits_set_in_without_a_kick_and_change_no_slow_motion(said):
    assert said["finite"]
    assert max(said["kick"].values()) < 1e-3
    assert said["stop"] < 1.0  # what stops a locked joint speeds no other up
    assert said["apart"] < 1e-4  # motion below a speed limit is unchanged


def test_a_joint_outside_its_window_is_pushed_no_harder_than_before(said):
    outside = said["outside"]
    assert outside["apart"] < 1e-3
    assert outside["at last"] < (0.05 if said["newton"] else 0.02)


def test_speed_stays_below_its_limit(said):
    speed = said["speed"]
    assert speed["healthy"]["max"] > 2 * SPEED
    for place in ("air", "ground"):
        assert speed[place]["above 1.1"] < 0.01
        assert speed[place]["max"] < 1.5 * SPEED
    assert speed["air"]["median of the fast"] > 0.95 * SPEED  # it limits, it does not stop


def test_limits_add_no_momentum(said_of_legged):
    """Chains hang from the world."""
    said = said_of_legged
    drift = said["drift"]
    # Newton's own integration: a healthy G1 that swings its legs drifts by 0.046 m/s in 3 s
    own = drift["swing"] if said["newton"] else 0.0
    assert drift["fast"] < 0.05 + own
    assert drift["locked"] < 0.05


def test_the_end_of_limits_restores_to_the_bit(said):
    assert said["restored"]


@pytest.mark.parametrize("robot", ["g1", "drive"])
def test_newton_gets_what_the_official_writers_write(measured, robot):
    assert all(measured["newton_mjwarp"][robot]["as official"])
