# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stand-ins for what exts/umc uses of Kit; names that are not here are errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

WIDGETS = (
    *("Button", "CheckBox", "ComboBox", "HStack", "IntField", "Label", "Rectangle", "ScrollingFrame", "Spacer"),
    *("StringField", "VStack", "Window"),
)
UPDATE, CLOSING = "omni.kit.app:update", "omni.usd::stage:closing"


class Model:
    """The value of a widget; ``type`` and ``choose`` are what a user does."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.on_change: list[Callable[..., None]] = []
        self.on_end: list[Callable[..., None]] = []
        self.add_value_changed_fn = self.add_item_changed_fn = self.on_change.append
        self.add_end_edit_fn = self.on_end.append
        self.get_value_as_bool = self.get_value_as_int = self.get_value_as_string = lambda: self.value

    def set_value(self, value: Any) -> None:
        changed, self.value = value != self.value, value
        for fn in self.on_change if changed else ():
            fn(self)

    def get_item_value_model(self) -> Model:
        return self

    def type(self, value: Any) -> None:
        """Type a value and press Enter."""
        self.set_value(value)
        for fn in self.on_end:
            fn(self)

    def choose(self, index: int) -> None:
        """Choose an item of a combo box."""
        self.value = index
        for fn in self.on_change:
            fn(self, None)


class Widget:
    """Any widget of omni.ui with its children."""

    __slots__ = ("arguments", "children", "enabled", "frame", "keywords", "kind", "model", "style", "text", "visible")
    parents: ClassVar[list[Widget]] = []
    windows: ClassVar[list[Widget]] = []

    def __init__(self, kind: str, *arguments: Any, **keywords: Any) -> None:
        self.kind, self.arguments, self.keywords = kind, arguments, keywords
        self.text = arguments[0] if arguments else ""
        self.style, self.children = keywords.get("style", {}), []
        self.enabled = self.visible = True
        self.model = Model({"ComboBox": self.text, "CheckBox": False, "IntField": 0}.get(kind, ""))
        if kind == "Window":
            self.frame = Widget("Frame")
            Widget.windows.append(self)
        elif Widget.parents:
            Widget.parents[-1].children.append(self)

    def __enter__(self) -> Widget:
        Widget.parents.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert Widget.parents.pop() is self

    def clear(self) -> None:
        self.children.clear()

    def destroy(self) -> None:
        Widget.windows.remove(self)

    def set_style(self, style: dict[str, int]) -> None:
        self.style = style

    def click(self) -> None:
        """Click a button, if it is enabled."""
        if self.enabled:
            self.keywords["clicked_fn"]()

    def all(self) -> list[Widget]:
        """Return this widget and all below it."""
        return [self, *(below for child in self.children for below in child.all())]


class FakeKit:
    """A Kit with settings by path and an open stage."""

    def __init__(self, settings: dict[str, Any], stage: Any = None) -> None:
        self.stage = stage
        self.observers: dict[str, Callable[[Any], None]] = {}
        self.actions: dict[tuple[str, str], Callable[[], None]] = {}
        self.menu: list[Any] = []
        registry = SimpleNamespace(
            register_action=lambda extension, action, fn, **_: self.actions.update({(extension, action): fn}),
            deregister_all_actions_for_extension=lambda extension: self.actions.clear(),
        )
        context = SimpleNamespace(get_stage=lambda: self.stage, stage_event_name=lambda event: event)
        self.names = {
            "carb.eventdispatcher.get_eventdispatcher": lambda: SimpleNamespace(observe_event=self._observe),
            "carb.settings.get_settings": lambda: settings,
            "omni.ext.IExt": object,
            "omni.kit.actions.core.get_action_registry": lambda: registry,
            "omni.kit.app.GLOBAL_EVENT_UPDATE": UPDATE,
            "omni.kit.menu.utils.MenuItemDescription": SimpleNamespace,
            "omni.kit.menu.utils.add_menu_items": lambda items, name: self.menu.extend(items),
            "omni.kit.menu.utils.remove_menu_items": lambda items, name: self.menu.remove(*items),
            "omni.usd.StageEventType": SimpleNamespace(CLOSING=CLOSING),
            "omni.usd.get_context": lambda: context,
            **{f"omni.ui.{kind}": partial(Widget, kind) for kind in WIDGETS},
        }
        self._modules: dict[str, ModuleType] = {}
        for name, value in self.names.items():
            setattr(self._module(name.rpartition(".")[0]), name.rpartition(".")[2], value)

    def _module(self, name: str) -> ModuleType:
        if name not in self._modules:
            module = self._modules[name] = ModuleType(name)
            parent, _, last = name.rpartition(".")
            if parent:
                setattr(self._module(parent), last, module)
        return self._modules[name]

    def _observe(self, *, observer_name: str, event_name: str, on_event: Callable[[Any], None]) -> Any:
        self.observers[event_name] = on_event
        return SimpleNamespace(reset=lambda: self.observers.pop(event_name))

    def install(self, put: Callable[[dict[str, Any], str, Any], None]) -> None:
        """Make the stand-ins importable; ``put`` is pytest's `monkeypatch.setitem` or `dict.__setitem__`."""
        for name, module in self._modules.items():
            put(sys.modules, name, module)

    def update(self) -> None:
        """Draw a frame."""
        if UPDATE in self.observers:
            self.observers[UPDATE](None)

    def close_stage(self) -> None:
        """Open another file."""
        self.observers[CLOSING](None)
        self.stage = None

    @property
    def window(self) -> Widget:
        """The only window."""
        (window,) = Widget.windows
        return window

    def find(self, kind: str, text: str = "") -> list[Widget]:
        """Return the widgets of a kind in the window, with a text if given."""
        return [one for one in self.window.frame.all() if one.kind == kind and text in ("", one.text)]
