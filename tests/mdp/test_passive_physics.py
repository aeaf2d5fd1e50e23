# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Damping and dry friction that faults add, on real engines: torques on a chain that turns without gravity."""

from types import SimpleNamespace

import pytest
import torch

pytestmark = pytest.mark.engine

ENGINES = ("newton_mjwarp", "ovphysx")
CHAINS = ("chain", "drive")
"""Explicit motors, and the engine's own drives."""

FREE, BRAKED, SHORTED, ONE, RUBBED, WORN, HELD = range(7)
"""Healthy; damping of all joints; more than an explicit torque could have; of the first joint alone; dry friction;
damping and a narrow window."""
DAMPING = {BRAKED: (0.5, 0.5, 0.5), SHORTED: (5.0, 5.0, 5.0), ONE: (50.0, 0.0, 0.0), HELD: (0.5, 0.5, 0.5)}
"""[N*m*s/rad]. A torque that is held for a step is unstable above 2 I / dt = 4.6 for the last link."""
FRICTION = {RUBBED: 0.3, WORN: 1.0}
"""[N*m]."""
WINDOW = 0.05
"""[rad]."""
ENVS, STEP = 7, 0.005
SPEED = (3.0, -2.0, 1.0)
"""Speeds when the fault sets in [rad/s]; the chain is straight then, and nothing but the fault acts on it."""
PUSH = 0.25
"""Torque of the last motor afterwards [N*m], less than the friction."""
COAST, HOLD = 400, 100
"""Physics steps without and with the push."""


def turning_chains(physics: str, chain: str, out: str) -> None:
    """Chains get damping or friction, come to rest, are pushed, and are healthy again."""
    import umc.utils.patches
    from isaaclab.actuators import IdealPDActuatorCfg, ImplicitActuatorCfg
    from isaaclab.assets import ArticulationCfg
    from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg, SimulationContext, UsdFileCfg
    from umc.mdp.physics import JointLimitWriter
    from umc.robots import A1_CFG
    from umc.tasks.base import physics_presets

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    engine = getattr(physics_presets(njmax=100, nconmax=20), physics)
    sim = SimulationContext(SimulationCfg(dt=STEP, gravity=(0.0, 0.0, 0.0), physics=engine, device="cpu"))
    cfg = InteractiveSceneCfg(num_envs=ENVS, env_spacing=5.0)
    loose = {"joint_names_expr": [".*"], "stiffness": 0.0, "damping": 0.0, "armature": 0.01}
    motors = {
        "chain": IdealPDActuatorCfg(actuator_effort_limit=20.0, actuator_velocity_limit=100.0, **loose),
        "drive": ImplicitActuatorCfg(joint_effort_limit=20.0, joint_velocity_limit=100.0, **loose),
    }
    for number, (name, motor) in enumerate(motors.items()):
        robot = ArticulationCfg(
            prim_path="{ENV_REGEX_NS}/" + name,
            spawn=UsdFileCfg(usd_path=chain, articulation_props=A1_CFG.spawn.articulation_props),
            actuators={"all": motor},
            init_state=ArticulationCfg.InitialStateCfg(pos=(0.0, 2.0 * number, 2.0)),
        )
        setattr(cfg, name, robot)
    scene = InteractiveScene(cfg)
    sim.reset()
    scene.reset()
    robots = {name: scene[name] for name in CHAINS}
    writers = {name: JointLimitWriter(robot) for name, robot in robots.items()}
    everywhere, log = torch.ones(ENVS, dtype=torch.bool), {name: {"v": [], "q": []} for name in CHAINS}

    def step(count: int) -> None:
        for _ in range(count):
            scene.write_data_to_sim()
            sim.step(render=False)
            scene.update(STEP)
            for name, robot in robots.items():
                for key, array in (("v", robot.data.joint_vel), ("q", robot.data.joint_pos)):
                    log[name][key].append(array.torch.clone())

    def passive(name: str) -> list:
        """What the engine has for the joints; on Newton also how hard its solver holds them."""
        shown = [writers[name]._passive.read()]
        if physics == "newton_mjwarp":
            from isaaclab_newton.physics import NewtonManager

            model = NewtonManager._solver.mjw_model
            braked = writers[name]._passive.engine._damping
            arrays = (braked, model.dof_frictionloss, model.dof_solref, model.dof_solimp)
            shown += [torch.from_numpy(array.numpy().copy()) for array in arrays]
        return shown

    step(1)
    before = {name: passive(name) for name in CHAINS}
    for robot in robots.values():
        speed = torch.tensor(SPEED).expand(ENVS, 3).clone()
        robot.write_joint_position_to_sim_index(position=torch.zeros(ENVS, 3))
        robot.write_joint_velocity_to_sim_index(velocity=speed)
    scene.update(0.0)
    for name, robot in robots.items():
        limits = writers[name].healthy
        for env, row in DAMPING.items():
            limits.damping[env] = torch.tensor(row)
        for env, torque in FRICTION.items():
            limits.friction[env] = torque
        limits.lower[HELD], limits.upper[HELD] = -WINDOW, WINDOW
        writers[name].write(limits, everywhere)
        inertia = robot.data.mass_matrix.torch[:, -3:, -3:] + torch.diag_embed(robot.data.joint_armature.torch)
        log[name] = {"v": [robot.data.joint_vel.torch.clone()], "q": [], "inertia": inertia.clone()}
    step(COAST)
    for robot in robots.values():
        robot.write_joint_velocity_to_sim_index(velocity=torch.zeros(ENVS, 3))
        push = torch.zeros(ENVS, 3)
        push[:, 2] = PUSH
        robot.actuators.target_command.set_effort_index(value=push)
    step(HOLD)
    whole = {name: passive(name) for name in CHAINS}
    for writer in writers.values():
        writer.restore(everywhere)
    for name, broken in whole.items():
        log[name]["restored"] = all(map(torch.equal, passive(name), before[name]))
        log[name]["differed"] = [not torch.equal(*pair) for pair in zip(broken, before[name], strict=True)]
    torch.save(
        {
            name: {key: torch.stack(rows) if key in ("v", "q") else rows for key, rows in values.items()}
            for name, values in log.items()
        },
        out,
    )


@pytest.fixture(scope="module")
def measured(run_engine, chain_usd, tmp_path_factory):
    out, found = tmp_path_factory.mktemp("passive") / "log.pt", {}
    for engine in ENGINES:
        run_engine(turning_chains, physics=engine, chain=chain_usd, out=str(out))
        for chain, log in torch.load(out, weights_only=True).items():
            found[engine, chain] = SimpleNamespace(newton=engine == "newton_mjwarp", **log)
    return found


@pytest.fixture(params=[(engine, chain) for engine in ENGINES for chain in CHAINS], ids="-".join)
def log(request, measured):
    return measured[request.param]


def torques(log) -> torch.Tensor:
    """What acts on the joints in the first step with the fault [N*m], from their accelerations. Shape is (E, 3)."""
    return torch.einsum("eij,ej->ei", log.inertia, log.v[1] - log.v[0]) / STEP


def test_a_shorted_motor_brakes_in_proportion_to_the_speed(log):
    pull, speed = torques(log)[BRAKED], log.v[1, BRAKED]
    assert pull.tolist() == pytest.approx((-DAMPING[BRAKED][0] * speed).tolist(), rel=0.01)
    assert torques(log)[FREE].abs().max() < 0.01
    # coupled joints that stop within a step: PhysX iterates over them one by one
    pull, speed = torques(log)[SHORTED], log.v[1, SHORTED]
    assert pull[0].item() == pytest.approx(-DAMPING[SHORTED][0] * speed[0].item(), rel=0.01 if log.newton else 0.25)


def test_braking_takes_energy_however_strong_it_is(log):
    coasting = log.v[: COAST + 1]
    # the chain bends: its inertia is that of the start in the first steps alone
    energy = torch.einsum("tei,eij,tej->te", coasting[:4], log.inertia, coasting[:4])
    for env in (BRAKED, SHORTED, ONE, RUBBED, WORN):
        assert (energy[1:, env] < energy[:-1, env]).all()
    # what is braked does not turn back; later the other joints reach their limits and pull at it
    assert (coasting[1:100, ONE, 0] > -0.01).all()
    assert coasting[COAST, SHORTED].abs().max() < 0.05
    assert coasting[COAST, FREE].abs().max() > 1.0


def test_a_braked_joint_keeps_its_window(log):
    beyond = log.q[:, HELD].abs().max() - WINDOW
    assert beyond < (1e-3 if log.newton else 0.02)
    assert log.q[:COAST, BRAKED].abs().max() > 2 * WINDOW


def test_dry_friction_resists_with_its_torque_and_then_holds(log):
    for env, torque in FRICTION.items():
        assert torques(log)[env].tolist() == pytest.approx([-torque, torque, -torque], rel=0.01)
        assert log.v[COAST, env].abs().max() < 1e-3  # at rest
    moved = (log.q[-1] - log.q[COAST]).abs()[:, 2]
    assert moved[[RUBBED, WORN]].max() < 1e-3
    assert moved[FREE] > 0.1


def test_the_end_of_the_fault_restores_to_the_bit(log):
    assert log.restored
    assert all(log.differed)
