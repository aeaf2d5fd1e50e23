# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The Kit side against fakes of what it uses of Kit, with a real USD stage under it."""

from __future__ import annotations

import builtins
import importlib
import sys
import tomllib
from types import SimpleNamespace

import fake_kit
import pytest
from fake_board import FakeBoard
from fake_kit import FakeKit
from pxr import Usd, UsdGeom, UsdPhysics
from umc.kit import FAULT_COLOR, SENSOR_COLOR, FaultPanel, packed

EXT_ID = "umc-0.1.0"


def leaves(table: dict, path: str = "") -> dict[str, object]:
    """Settings by path, as Kit keeps them."""
    if not isinstance(table, dict):
        return {path: table}
    return {key: value for name, below in table.items() for key, value in leaves(below, f"{path}/{name}").items()}


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(spec=SimpleNamespace(id="UMC-A1-Stage2"), board=FakeBoard())


@pytest.fixture
def stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    for number in range(4):
        for link in ("thigh", "shin"):
            path = f"/World/envs/env_{number}/Robot/{link}"
            UsdPhysics.RigidBodyAPI.Apply(stage.DefinePrim(path, "Xform"))
            UsdGeom.Cube.Define(stage, f"{path}/shape").CreateDisplayColorAttr([(0.5, 0.5, 0.5)])
    return stage


@pytest.fixture
def kit(monkeypatch, extension_folder, stage) -> FakeKit:
    toml = tomllib.loads((extension_folder / "config/extension.toml").read_text())
    kit = FakeKit(leaves(toml["settings"]), stage)
    kit.install(monkeypatch.setitem)
    monkeypatch.syspath_prepend(str(extension_folder))
    monkeypatch.setattr(fake_kit.Window, "_existing", [])
    yield kit
    for name in [name for name in sys.modules if name.partition(".")[0] == "umc_kit"]:
        del sys.modules[name]


@pytest.fixture
def extension(kit, env, monkeypatch):
    """The extension, switched on, while a task runs."""
    module = importlib.import_module("umc_kit")
    extension = module.UmcExtension()
    clock = iter(range(1000))
    monkeypatch.setattr("umc_kit.extension.time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    monkeypatch.setattr("umc.kit.FaultPanel", lambda: FaultPanel(lambda: env, lambda one: one.board))
    monkeypatch.setattr("umc.kit.link_colors.robot_path", lambda env, number: f"/World/envs/env_{number}/Robot")
    extension.on_startup(EXT_ID)
    kit.update()
    return extension


def texts(kit: FakeKit) -> list[str]:
    return [label.text for label in kit.find(fake_kit.Label)]


def color(stage: Usd.Stage, number: int, link: str) -> tuple[float, ...]:
    shape = UsdGeom.Gprim(stage.GetPrimAtPath(f"/World/envs/env_{number}/Robot/{link}/shape"))
    return tuple(shape.GetDisplayColorAttr().Get()[0])


def test_kit_finds_one_extension_which_shows_the_running_task(kit, extension):
    module = importlib.import_module("umc_kit")
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, fake_kit.IExt)]
    assert [value.__name__ for value in found] == ["UmcExtension"]
    assert texts(kit)[0] == "UMC-A1-Stage2"
    assert {"joint", "fault", "severity", "detected", "since", "hip", "knee", "of 4"} <= set(texts(kit))
    assert kit.find(fake_kit.ComboBox)[0]._items == ("dead", "rom", "dropped")


def test_break_shows_in_table_and_viewport_until_heal(kit, extension, env, stage):
    kit.find(fake_kit.ComboBox)[0].model._choose(1)
    kit.find(fake_kit.StringField)[0].model._type("0.25")
    kit.find(fake_kit.Button, "break")[1]._click()
    assert env.board.faults[0] == {"knee": {"rom": 0.25}}
    kit.update()
    assert {"rom", "0.25", "no", "1.50 s"} <= set(texts(kit))
    assert packed(FAULT_COLOR) in [box._style.get("background_color") for box in kit.find(fake_kit.Rectangle)[3:]]
    assert color(stage, 0, "shin") == pytest.approx(FAULT_COLOR)
    assert color(stage, 1, "shin") == color(stage, 0, "thigh") == (0.5, 0.5, 0.5)

    assert [button.enabled for button in kit.find(fake_kit.Button, "heal")] == [False, True]
    kit.find(fake_kit.Button, "heal")[1]._click()
    kit.update()
    assert "rom" not in texts(kit)
    assert color(stage, 0, "shin") == (0.5, 0.5, 0.5)


def test_heal_all_joints_and_mistakes_in_red(kit, extension, env):
    for button in kit.find(fake_kit.Button, "break"):
        button._click()
    assert len(env.board.faults[0]) == 2
    kit.find(fake_kit.Button, "heal all joints")[0]._click()
    assert not env.board.faults[0]
    kit.find(fake_kit.StringField)[0].model._type("much")
    kit.find(fake_kit.Button, "break")[0]._click()
    kit.update()
    (label,) = [label for label in kit.find(fake_kit.Label) if "is not a number" in label.text]
    assert label._style["color"] == 0xFF5555FF
    assert not env.board.faults[0]


def test_env_selector_moves_table_and_colors(kit, extension, env, stage):
    env.board.inject(2, "hip", "dead")
    field = kit.find(fake_kit.IntField)[0].model
    field._type(2)
    kit.update()
    assert "dead" in texts(kit)
    assert color(stage, 2, "thigh") == pytest.approx(SENSOR_COLOR)
    kit.find(fake_kit.Button, "+")[0]._click()
    kit.update()
    assert field.get_value_as_int() == 3
    assert color(stage, 2, "thigh") == (0.5, 0.5, 0.5)
    field._type(99)
    assert field.get_value_as_int() == 3
    kit.find(fake_kit.Button, "-")[0]._click()
    assert field.get_value_as_int() == 2


def test_check_box_switches_colors_and_links_without_color_are_named(kit, extension, env, stage):
    box = kit.find(fake_kit.CheckBox)[0].model
    assert box.get_value_as_bool()
    env.board.inject(0, "hip", "dead")
    kit.update()
    box._type(False)
    kit.update()
    assert color(stage, 0, "thigh") == (0.5, 0.5, 0.5)
    assert "dead" in texts(kit)
    stage.RemovePrim("/World/envs/env_0/Robot/thigh/shape")
    box._type(True)
    kit.update()
    assert any(text.startswith("no colors for thigh") for text in texts(kit))
    kit.close_stage()  # another file is opened
    kit.update()
    kit.stage = Usd.Stage.CreateInMemory()
    kit.update()
    assert any("the stage has no prim" in text for text in texts(kit))


def test_the_table_follows_the_task(kit, extension, env, monkeypatch):
    panel = extension._panel
    other = SimpleNamespace(
        spec=SimpleNamespace(id="UMC-Other-Stage1"), board=FakeBoard(links={"neck": "head"}, kinds=("rom",))
    )
    monkeypatch.setattr(panel, "_find", lambda: other)
    kit.update()
    assert "neck" in texts(kit)
    assert "knee" not in texts(kit)
    assert kit.find(fake_kit.ComboBox)[0]._items == ("rom",)
    monkeypatch.setattr(panel, "_find", lambda: None)
    kit.update()
    assert texts(kit)[0] == "no task with UMC's faults is running"
    assert kit.find(fake_kit.ComboBox) == []


def test_looks_no_more_often_than_the_setting_says(kit, extension, monkeypatch):
    looks = []
    monkeypatch.setattr(extension._panel, "refresh", lambda: looks.append(None))
    clock = iter((1000.0, 1000.1, 1000.19, 1000.21, 1000.3, 1000.45))
    monkeypatch.setattr("umc_kit.extension.time", SimpleNamespace(monotonic=lambda: next(clock)))
    for _ in range(6):
        kit.update()
    assert len(looks) == 3


def test_window_menu_hides_and_shows_the_panel(kit, extension):
    (item,) = kit.menus["Window"]
    for visible in (False, True):
        kit.actions[item._action]()
        assert kit.window.visible == visible


@pytest.mark.parametrize("broken", [False, True])
def test_switching_off_leaves_nothing_behind(kit, extension, env, stage, broken):
    untouched = stage.Flatten().ExportToString()
    if broken:
        env.board.inject(0, "hip", "dead")
        kit.update()
        assert stage.Flatten().ExportToString() != untouched
    extension.on_shutdown()
    assert stage.Flatten().ExportToString() == untouched
    assert list(stage.GetSessionLayer().subLayerPaths) == []
    assert kit.observers == kit.actions == {}
    assert kit.menus == {"Window": []}
    assert fake_kit.Window._existing == []
    kit.update()
    extension.on_startup(EXT_ID)  # and on again
    kit.update()
    assert kit.window.visible
    extension.on_shutdown()


def test_without_umc_it_names_the_fix_and_does_no_harm(kit, monkeypatch, caplog):
    real = builtins.__import__

    def without_umc(name: str, *rest: object, **keywords: object) -> object:
        if name.partition(".")[0] == "umc":
            raise ModuleNotFoundError("No module named 'umc'", name="umc")
        return real(name, *rest, **keywords)

    module = importlib.import_module("umc_kit")
    monkeypatch.setattr(builtins, "__import__", without_umc)
    extension = module.UmcExtension()
    extension.on_startup(EXT_ID)
    assert "./isaaclab.sh -i" in caplog.text
    kit.update()
    extension.on_shutdown()
    assert kit.observers == kit.menus == {}
