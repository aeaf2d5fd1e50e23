# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What Kit reads of exts/umc without starting it, and that every name it uses of Kit is in the table of docs/kit.md."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import fake_kit
import pytest
import umc
from PIL import Image

ROOTS = ("carb", "omni")
PUBLIC_HOSTS = ("docs.omniverse.nvidia.com", "docs.isaacsim.omniverse.nvidia.com")
ICON_SIZE = (256, 256)
"""What NVIDIA's template of extension.toml asks for [px]."""

NOT_OF_EXTENSIONS = ("carb", "omni.ext", "omni.kit.app")
"""Modules that Kit's kernel brings; all others belong to an extension that has to be named as a dependency."""


@pytest.fixture
def toml(extension_folder) -> dict[str, Any]:
    return tomllib.loads((extension_folder / "config/extension.toml").read_text())


@pytest.fixture
def table(extension_folder) -> dict[str, tuple[set[str], list[str]]]:
    """Members in use and public pages, by name."""
    text = (extension_folder.parents[1] / "docs/kit.md").read_text()
    rows = re.findall(r"^\| `((?:carb|omni)[\w.]*)` \|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    assert len(rows) == len({name for name, _, _ in rows})
    return {name: (set(re.findall(r"`(\w+)`", used)), re.findall(r"<(.*?)>", pages)) for name, used, pages in rows}


def dotted(node: ast.AST) -> str:
    """The name that an expression spells; empty if it is none."""
    if isinstance(node, ast.Name):
        return node.id
    below = dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{below}.{node.attr}" if below else ""


def kit_names(folder: Path) -> set[str]:
    """Every name of Kit that a Python package uses, in full."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        aliases = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        aliases[alias.asname] = alias.name
                    else:
                        aliases[alias.name.partition(".")[0]] = alias.name.partition(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                aliases |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            first, _, rest = dotted(node).partition(".")
            full = f"{aliases.get(first, '')}.{rest}" if rest else aliases.get(first, "")
            if full.partition(".")[0] in ROOTS:
                names.add(full)
    return {name for name in names if not any(other.startswith(f"{name}.") for other in names)}


def attributes(folder: Path) -> set[str]:
    """Every attribute, and every keyword argument, that a Python package writes down."""
    nodes = [node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def members(value: Any) -> set[str]:
    """Public names of a class, those of its bases included."""
    return {name for name in dir(value) if not name.startswith("_")}


def test_every_name_of_kit_is_in_the_table_of_the_docs(extension_folder, table):
    # a member of a class that is named in full belongs to the class's line
    found = {re.sub(r"(\.[A-Z][a-z]\w*)\.\w+$", r"\1", name) for name in kit_names(extension_folder / "umc_kit")}
    returned = {name for name in table if name.rpartition(".")[2] in RETURNED}
    assert found == set(table) - returned
    assert kit_names(Path(umc.__file__).parent / "kit") == set()  # Kit is imported nowhere else
    for name, (_, pages) in table.items():
        assert pages, name
        assert all(page.split("/")[:3] in [["https:", "", host] for host in PUBLIC_HOSTS] for page in pages), name


RETURNED = {
    "AbstractItemModel": fake_kit.AbstractItemModel,
    "AbstractValueModel": fake_kit.AbstractValueModel,
    "IActionRegistry": fake_kit.IActionRegistry,
    "IEventDispatcher": fake_kit.IEventDispatcher,
    "ISettings": fake_kit.ISettings,
    "ObserverGuard": fake_kit.ObserverGuard,
    "UsdContext": fake_kit.UsdContext,
}
"""Classes that the extension never names, but whose objects it is given."""


def test_fakes_have_what_the_table_lists_and_the_extension_uses(extension_folder, table):
    fakes = fake_kit.FakeKit({}).names() | {
        name: RETURNED[name.rpartition(".")[2]] for name in table if name.rpartition(".")[2] in RETURNED
    }
    assert set(fakes) == set(table)
    listed = {name: used for name, (used, _) in table.items()}
    assert listed == {name: members(fake) if isinstance(fake, type) else set() for name, fake in fakes.items()}
    assert set().union(*listed.values()) <= attributes(extension_folder / "umc_kit")


def test_named_files_exist(toml, extension_folder):
    package = toml["package"]
    for key in ("changelog", "readme", "icon", "preview_image"):
        assert (extension_folder / package[key]).is_file(), key
    with Image.open(extension_folder / package["icon"]) as icon:
        assert icon.size == ICON_SIZE
    picture = extension_folder.parents[1] / "docs/images/kit_panel.png"  # drawn by draw_kit.py, shown in two places
    assert picture.read_bytes() == (extension_folder / package["preview_image"]).read_bytes()


def test_modules_exist_and_hide_nothing_of_others(toml, extension_folder):
    names = [module["name"] for module in toml["python"]["module"]]
    assert {path.parent.name for path in extension_folder.glob("*/__init__.py")} == set(names)
    # Kit puts the extension's folder into sys.path: a module of another's name there, umc's above all, would hide it
    assert [name for name in names if importlib.util.find_spec(name)] == []
    assert list(extension_folder.glob("*.py")) == []


def test_versions_dependencies_and_settings_agree_with_what_is_used(toml, extension_folder, table):
    changelog = (extension_folder / "docs/CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(.*?)\]", changelog, re.MULTILINE)[0] == toml["package"]["version"] == umc.__version__
    modules = {name.rpartition(".")[0] for name in table}
    extensions = {name for name in modules if not any(name == k or name.startswith(f"{k}.") for k in NOT_OF_EXTENSIONS)}
    assert extensions == set(toml["dependencies"])
    text = (extension_folder / "umc_kit/extension.py").read_text()
    assert set(re.findall(r'SETTINGS \+ "(\w+)"', text)) == set(toml["settings"]["exts"]["umc"])
