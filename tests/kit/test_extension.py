# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The extension on stand-ins of Kit, with a real USD stage: clicks, the viewport, and what Kit reads of its files."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import re
import sys
import tomllib
from types import SimpleNamespace

import pytest
import umc
from fake_injector import FakeInjector
from fake_kit import FakeKit, Widget
from pxr import Usd, UsdGeom, UsdPhysics
from umc.kit import FaultPanel
from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR

EXT_ID = "umc-0.1.0"
GRAY = (0.5, 0.5, 0.5)
FROM_KERNEL = ("carb", "omni.ext", "omni.kit.app")
"""Modules of Kit's kernel; all others belong to an extension that has to be named as a dependency."""


@pytest.fixture
def toml(extension_folder) -> dict:
    return tomllib.loads((extension_folder / "config/extension.toml").read_text())


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(spec=SimpleNamespace(id="UMC-A1-Stage2"), injector=FakeInjector())


@pytest.fixture
def stage() -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    for number in range(4):
        for link in ("thigh", "shin"):
            path = f"/World/envs/env_{number}/Robot/{link}"
            UsdPhysics.RigidBodyAPI.Apply(stage.DefinePrim(path, "Xform"))
            UsdGeom.Cube.Define(stage, f"{path}/shape").CreateDisplayColorAttr([GRAY])
    return stage


@pytest.fixture
def kit(monkeypatch, extension_folder, toml, stage) -> FakeKit:
    settings = {f"/exts/umc/{name}": value for name, value in toml["settings"]["exts"]["umc"].items()}
    kit = FakeKit(settings, stage)
    kit.install(monkeypatch.setitem)
    monkeypatch.syspath_prepend(str(extension_folder))
    monkeypatch.setattr(Widget, "windows", [])
    yield kit
    for name in [name for name in sys.modules if name.partition(".")[0] == "umc_kit"]:
        del sys.modules[name]


@pytest.fixture
def clock(kit, monkeypatch) -> SimpleNamespace:
    """A clock that every look at moves on."""
    clock = SimpleNamespace(now=0.0, step=1.0)

    def monotonic() -> float:
        clock.now += clock.step
        return clock.now

    monkeypatch.setattr(importlib.import_module("umc_kit.extension"), "time", SimpleNamespace(monotonic=monotonic))
    return clock


@pytest.fixture
def extension(kit, clock, env, monkeypatch):
    """The extension, switched on, while a task runs."""
    extension = importlib.import_module("umc_kit").UmcExtension()
    monkeypatch.setattr("umc.kit.FaultPanel", lambda: FaultPanel(lambda: env, lambda one: one.injector))
    monkeypatch.setattr("umc.kit.link_colors.robot_path", lambda env, number: f"/World/envs/env_{number}/Robot")
    extension.on_startup(EXT_ID)
    kit.update()
    return extension


def texts(kit: FakeKit) -> list[str]:
    return [label.text for label in kit.find("Label")]


def color(stage: Usd.Stage, number: int, link: str) -> tuple[float, ...]:
    shape = UsdGeom.Gprim(stage.GetPrimAtPath(f"/World/envs/env_{number}/Robot/{link}/shape"))
    return tuple(shape.GetDisplayColorAttr().Get()[0])


def test_a_click_on_break_shows_in_table_and_viewport_until_heal(kit, extension, env, stage):
    assert {"UMC-A1-Stage2", "joint", "severity", "detected", "since", "hip", "knee", "of 4"} <= set(texts(kit))
    assert kit.find("ComboBox")[0].arguments[1:] == ("dead", "rom", "dropped")
    kit.find("ComboBox")[0].model.choose(1)
    kit.find("StringField")[0].model.type("0.25")
    kit.find("Button", "break")[1].click()
    assert env.injector.faults[0] == {"knee": {"rom": 0.25}}
    kit.update()
    assert {"rom", "0.25", "no", "1.50 s"} <= set(texts(kit))
    assert 0xFF1C21DB in [box.style.get("background_color") for box in kit.find("Rectangle")[3:]]
    assert color(stage, 0, "shin") == pytest.approx(FAULT_COLOR)
    assert color(stage, 1, "shin") == color(stage, 0, "thigh") == GRAY
    assert [button.enabled for button in kit.find("Button", "heal")] == [False, True]
    kit.find("Button", "heal")[1].click()
    kit.update()
    assert "rom" not in texts(kit)
    assert color(stage, 0, "shin") == GRAY


def test_mistakes_are_red(kit, extension, env):
    kit.find("StringField")[0].model.type("much")
    kit.find("Button", "break")[0].click()
    kit.update()
    (label,) = [label for label in kit.find("Label") if "is not a number" in label.text]
    assert label.style["color"] == 0xFF5555FF
    assert not env.injector.faults[0]


def test_the_env_selector_moves_table_and_colors(kit, extension, env, stage):
    env.injector.inject(2, "hip", "dead")
    field = kit.find("IntField")[0].model
    field.type(2)
    kit.update()
    assert "dead" in texts(kit)
    assert color(stage, 2, "thigh") == pytest.approx(SENSOR_COLOR)
    kit.find("Button", "+")[0].click()
    kit.update()
    assert field.value == 3
    assert color(stage, 2, "thigh") == GRAY
    for number, shown in ((-3, 0), (1, 1), (99, 3)):  # past the ends: the last env there
        field.type(number)
        assert field.value == shown
    kit.find("Button", "heal all joints")[0].click()
    assert env.injector.faults[2]  # of the selected env only
    kit.find("Button", "-")[0].click()
    assert field.value == 2
    kit.find("Button", "heal all joints")[0].click()
    assert not env.injector.faults[2]


def test_the_check_box_switches_colors_and_links_without_color_are_named(kit, extension, env, stage):
    box = kit.find("CheckBox")[0].model
    assert box.value is True  # the setting
    env.injector.inject(0, "hip", "dead")
    kit.update()
    box.type(False)
    kit.update()
    assert color(stage, 0, "thigh") == GRAY
    assert "dead" in texts(kit)
    stage.RemovePrim("/World/envs/env_0/Robot/thigh/shape")
    box.type(True)
    kit.update()
    assert any(text.startswith("no colors for thigh") for text in texts(kit))
    kit.close_stage()  # another file is opened
    kit.update()
    kit.stage = Usd.Stage.CreateInMemory()
    kit.update()
    assert any("the stage has no prim" in text for text in texts(kit))


def test_the_window_follows_the_task_and_the_refresh_period_and_the_menu_hides_it(kit, extension, clock, monkeypatch):
    injector = FakeInjector(links={"neck": "head"}, kinds=("rom",))
    other = SimpleNamespace(spec=SimpleNamespace(id="UMC-Other-Stage1"), injector=injector)
    monkeypatch.setattr(extension._panel, "_find", lambda: other)
    kit.update()
    assert "neck" in texts(kit)
    assert "knee" not in texts(kit)
    assert kit.find("ComboBox")[0].arguments[1:] == ("rom",)
    monkeypatch.setattr(extension._panel, "_find", lambda: None)
    clock.step = 0.07
    for _ in range(2):
        kit.update()
        assert "neck" in texts(kit)  # 0.2 s have not passed
    kit.update()
    assert texts(kit)[0] == "no task with UMC's faults is running"
    assert kit.find("ComboBox") == []
    for visible in (False, True):
        kit.actions[kit.menu[0].onclick_action]()
        assert kit.window.visible == visible


def test_switching_off_leaves_nothing_behind(kit, extension, env, stage):
    untouched = stage.Flatten().ExportToString()
    env.injector.inject(0, "hip", "dead")
    kit.update()
    assert stage.Flatten().ExportToString() != untouched
    extension.on_shutdown()
    assert stage.Flatten().ExportToString() == untouched
    assert list(stage.GetSessionLayer().subLayerPaths) == []
    assert kit.observers == kit.actions == {}
    assert kit.menu == Widget.windows == []
    extension.on_startup(EXT_ID)  # and on again
    kit.update()
    assert kit.window.visible


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
    extension.on_shutdown()
    assert kit.observers == kit.actions == {}


def test_what_kit_reads_exists_and_fits_the_package(toml, extension_folder):
    package = toml["package"]
    for key in ("changelog", "readme", "icon", "preview_image"):
        assert (extension_folder / package[key]).is_file(), key
    changelog = (extension_folder / "docs/CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(.*?)\]", changelog, re.MULTILINE)[0] == package["version"] == umc.__version__
    names = [module["name"] for module in toml["python"]["module"]]
    assert {path.parent.name for path in extension_folder.glob("*/__init__.py")} == set(names)
    # Kit puts the extension's folder into sys.path: a module of another's name there would hide it
    assert [name for name in names if importlib.util.find_spec(name)] == []
    assert list(extension_folder.glob("*.py")) == []


def test_names_of_kit_are_in_the_docs_and_their_extensions_and_settings_in_extension_toml(kit, toml, extension_folder):
    docs = (extension_folder / "docs/KIT_NAMES.md").read_text()
    assert [name for name in kit.names if f"\n| `{name}` | " not in docs] == []
    text = "\n".join(path.read_text() for path in (extension_folder / "umc_kit").glob("*.py"))
    used = set(re.findall(r"^\s*import ((?:omni|carb)[\w.]*)", text, re.MULTILINE))
    assert {name for name in used if not name.startswith(FROM_KERNEL)} == set(toml["dependencies"])
    assert set(re.findall(r'SETTINGS \+ "(\w+)"', text)) == set(toml["settings"]["exts"]["umc"])
