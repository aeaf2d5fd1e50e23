# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stand-ins for what exts/umc uses of Kit, and for nothing else: any other name or keyword is an error.

Public names of these classes are the table in docs/kit.md, which a test compares.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar

MODULES = (
    "carb",
    "carb.eventdispatcher",
    "carb.settings",
    "omni",
    "omni.ext",
    "omni.kit",
    "omni.kit.actions",
    "omni.kit.actions.core",
    "omni.kit.app",
    "omni.kit.menu",
    "omni.kit.menu.utils",
    "omni.ui",
    "omni.usd",
)


class AbstractValueModel:
    """A value that people edit."""

    def __init__(self, value: Any, kind: type) -> None:
        self._value, self._kind = kind(value), kind
        self._changed: list[Callable[[Any], None]] = []
        self._ended: list[Callable[[Any], None]] = []

    def add_value_changed_fn(self, fn: Callable[[Any], None]) -> int:
        self._changed.append(fn)
        return len(self._changed)

    def add_end_edit_fn(self, fn: Callable[[Any], None]) -> int:
        self._ended.append(fn)
        return len(self._ended)

    def get_value_as_bool(self) -> bool:
        return bool(self._value)

    def get_value_as_int(self) -> int:
        return int(self._value)

    def get_value_as_string(self) -> str:
        return str(self._value)

    def set_value(self, value: Any) -> None:
        changed, self._value = value != self._value, self._kind(value)
        for fn in self._changed if changed else ():
            fn(self)

    def _type(self, value: Any) -> None:
        """Type a value and press Enter."""
        self.set_value(value)
        for fn in self._ended:
            fn(self)


class AbstractItemModel:
    """The choice of a combo box."""

    def __init__(self, index: int) -> None:
        self._index = AbstractValueModel(index, int)
        self._changed: list[Callable[[Any, Any], None]] = []

    def add_item_changed_fn(self, fn: Callable[[Any, Any], None]) -> int:
        self._changed.append(fn)
        return len(self._changed)

    def get_item_value_model(self) -> AbstractValueModel:
        return self._index

    def _choose(self, index: int) -> None:
        self._index.set_value(index)
        for fn in self._changed:
            fn(self, None)


class Widget:
    """Any widget. Properties can be set if its class has them."""

    _keywords: ClassVar[set[str]] = {"width", "height", "style"}
    _open: ClassVar[list[Widget]] = []

    def __init__(self, **keywords: Any) -> None:
        unknown = set(keywords) - self._keywords
        assert not unknown, f"{type(self).__name__} takes no {unknown}"
        self._keyword = keywords
        self._style = keywords.get("style", {})
        self._children: list[Widget] = []
        if Widget._open:
            Widget._open[-1]._children.append(self)

    def __setattr__(self, name: str, value: Any) -> None:
        assert name.startswith("_") or hasattr(type(self), name), f"{type(self).__name__} has no {name}"
        object.__setattr__(self, name, value)

    def _all(self) -> list[Widget]:
        return [self, *(below for child in self._children for below in child._all())]


class Container(Widget):
    """A widget that holds others."""

    def __enter__(self) -> Container:
        Widget._open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert Widget._open.pop() is self


class HStack(Container):
    _keywords: ClassVar[set[str]] = {"width", "height", "spacing"}

    def clear(self) -> None:
        self._children.clear()


class VStack(HStack):
    pass


class ScrollingFrame(Container):
    pass


class Spacer(Widget):
    pass


class Rectangle(Widget):
    def set_style(self, style: dict[str, int]) -> None:
        self._style = style


class Label(Rectangle):
    text = ""

    def __init__(self, text: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.text = text


class Button(Widget):
    _keywords: ClassVar[set[str]] = {"width", "height", "clicked_fn"}
    enabled = True

    def __init__(self, text: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._text = text

    def _click(self) -> None:
        if self.enabled:
            self._keyword["clicked_fn"]()


class CheckBox(Widget):
    model: Any = None
    _kind: ClassVar[type] = bool

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.model = AbstractValueModel("" if self._kind is str else 0, self._kind)


class IntField(CheckBox):
    _kind: ClassVar[type] = int


class StringField(CheckBox):
    _kind: ClassVar[type] = str


class ComboBox(Widget):
    model: Any = None

    def __init__(self, index: int, *items: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._items = items
        self.model = AbstractItemModel(index)


class Window:
    """A window."""

    visible = True
    frame: Any = None
    _existing: ClassVar[list[Window]] = []

    def __init__(self, title: str, width: int, height: int) -> None:
        self._title, self._size = title, (width, height)
        self.frame = Container()
        Window._existing.append(self)

    def destroy(self) -> None:
        Window._existing.remove(self)


class ObserverGuard:
    """What holds an observer; without it, it is gone."""

    def __init__(self, kit: FakeKit, key: tuple[str, str]) -> None:
        self._kit, self._key = kit, key

    def reset(self) -> None:
        self._kit.observers.pop(self._key, None)


class _OfKit:
    def __init__(self, kit: FakeKit) -> None:
        self._kit = kit


class IEventDispatcher(_OfKit):
    def observe_event(self, *, observer_name: str, event_name: str, on_event: Callable[[Any], None]) -> ObserverGuard:
        self._kit.observers[observer_name, event_name] = on_event
        return ObserverGuard(self._kit, (observer_name, event_name))


class ISettings(_OfKit):
    def get(self, path: str) -> Any:
        return self._kit.settings[path]


class IActionRegistry(_OfKit):
    def register_action(
        self, extension_id: str, action_id: str, fn: Callable[[], None], *, display_name: str, description: str
    ) -> None:
        assert display_name
        assert description
        self._kit.actions[extension_id, action_id] = fn

    def deregister_all_actions_for_extension(self, extension_id: str) -> None:
        self._kit.actions = {key: fn for key, fn in self._kit.actions.items() if key[0] != extension_id}


class MenuItemDescription:
    def __init__(self, *, name: str, onclick_action: tuple[str, str]) -> None:
        self._name, self._action = name, onclick_action


class UsdContext(_OfKit):
    def get_stage(self) -> Any:
        return self._kit.stage

    def stage_event_name(self, event: str) -> str:
        return f"omni.usd::stage:{event.lower()}"


class IExt:
    """Base of extensions."""


class StageEventType:
    CLOSING = "CLOSING"


WIDGETS = (Button, CheckBox, ComboBox, HStack, IntField, Label, Rectangle, ScrollingFrame, Spacer, StringField, VStack)


class FakeKit:
    """A Kit, as far as exts/umc can tell, with the settings of extension.toml by path and an open stage."""

    def __init__(self, settings: dict[str, Any], stage: Any = None) -> None:
        self.settings, self.stage = settings, stage
        self.observers: dict[tuple[str, str], Callable[[Any], None]] = {}
        self.actions: dict[tuple[str, str], Callable[[], None]] = {}
        self.menus: dict[str, list[MenuItemDescription]] = {}
        self._modules = {name: types.ModuleType(name) for name in MODULES}
        for name, module in self._modules.items():
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(self._modules[parent], child, module)
        for name, value in self.names().items():
            module, _, last = name.rpartition(".")
            setattr(self._modules[module], last, value)

    def names(self) -> dict[str, Any]:
        """Return all names."""
        return {
            "carb.eventdispatcher.get_eventdispatcher": lambda: IEventDispatcher(self),
            "carb.settings.get_settings": lambda: ISettings(self),
            "omni.ext.IExt": IExt,
            "omni.kit.actions.core.get_action_registry": lambda: IActionRegistry(self),
            "omni.kit.app.GLOBAL_EVENT_UPDATE": "omni.kit.app:update",
            "omni.kit.menu.utils.MenuItemDescription": MenuItemDescription,
            "omni.kit.menu.utils.add_menu_items": self._add_menu_items,
            "omni.kit.menu.utils.remove_menu_items": self._remove_menu_items,
            "omni.ui.Window": Window,
            "omni.usd.StageEventType": StageEventType,
            "omni.usd.get_context": lambda: UsdContext(self),
            **{f"omni.ui.{widget.__name__}": widget for widget in WIDGETS},
        }

    def install(self, put: Callable[[dict[str, Any], str, Any], None]) -> None:
        """Make the stand-ins importable; ``put`` is pytest's `monkeypatch.setitem` or `dict.__setitem__`."""
        for name, module in self._modules.items():
            put(sys.modules, name, module)

    def dispatch(self, event_name: str) -> None:
        """Send an event."""
        for (_, name), on_event in list(self.observers.items()):
            if name == event_name:
                on_event(None)

    def update(self) -> None:
        """Draw a frame."""
        self.dispatch("omni.kit.app:update")

    def close_stage(self) -> None:
        """Open another file."""
        self.dispatch("omni.usd::stage:closing")
        self.stage = None

    @property
    def window(self) -> Window:
        """The only window."""
        (window,) = Window._existing
        return window

    def find(self, kind: type, text: str = "") -> list[Any]:
        """Return the widgets of a class in the window, with a text if given."""
        found = [widget for widget in self.window.frame._all() if type(widget) is kind]
        return [widget for widget in found if not text or text in (vars(widget).get("_text"), vars(widget).get("text"))]

    def _add_menu_items(self, menu: list[MenuItemDescription], name: str) -> None:
        self.menus.setdefault(name, []).extend(menu)

    def _remove_menu_items(self, menu: list[MenuItemDescription], name: str) -> None:
        self.menus[name] = [item for item in self.menus[name] if item not in menu]
