# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Connect Kit's events, menu and stage to ``umc.kit``."""

from __future__ import annotations

import logging
import time
from typing import Any

import carb.eventdispatcher
import carb.settings
import omni.ext
import omni.kit.actions.core
import omni.kit.app
import omni.kit.menu.utils
import omni.usd

from .window import TITLE, PanelWindow

logger = logging.getLogger(__name__)

ACTION = "toggle_panel"
MENU = "Window"
SETTINGS = "/exts/umc/"
NOT_INSTALLED = "the package umc is not in this Python; with it activated, run ./isaaclab.sh -i in the umc repository"


class UmcExtension(omni.ext.IExt):
    """Open the panel when the extension is enabled, and restore everything when it is disabled."""

    def on_startup(self, ext_id: str) -> None:
        """Open the panel; Kit calls it when the extension with this name and version is enabled."""
        self._ext_id = ext_id
        self._observers: list[Any] = []
        self._menu: list[Any] = []
        self._window: PanelWindow | None = None
        self._links: Any = None
        try:
            from umc.kit import FaultPanel
            from umc.kit.link_colors import LinkColors
        except ModuleNotFoundError as error:
            if error.name != "umc":
                raise
            logger.error(NOT_INSTALLED)  # the Kit manual recommends Python's logging, which ends in Kit's console
            return
        settings = carb.settings.get_settings()
        self._period: float = settings.get(SETTINGS + "refresh_period")
        self._due = 0.0
        self._panel = FaultPanel()
        self._panel.color_links = settings.get(SETTINGS + "color_links")
        self._links = LinkColors()
        self._window = PanelWindow(self._panel)
        self._add_menu()
        context = omni.usd.get_context()
        self._observe("update", omni.kit.app.GLOBAL_EVENT_UPDATE, self._on_update)
        closing = context.stage_event_name(omni.usd.StageEventType.CLOSING)
        self._observe("stage closing", closing, self._on_stage_closing)

    def on_shutdown(self) -> None:
        """Close the panel; Kit calls it when the extension is disabled."""
        for observer in self._observers:
            observer.reset()
        self._observers = []
        if self._menu:
            omni.kit.menu.utils.remove_menu_items(self._menu, MENU)
            omni.kit.actions.core.get_action_registry().deregister_all_actions_for_extension(self._ext_id)
            self._menu = []
        if self._links is not None:
            self._links.restore()
            self._links = None
        if self._window is not None:
            self._window.destroy()
            self._window = None

    def _add_menu(self) -> None:
        """Add the panel to Kit's Window menu, which shows it again."""
        omni.kit.actions.core.get_action_registry().register_action(
            self._ext_id, ACTION, self._toggle, display_name=f"{MENU}->{TITLE}", description="Show or hide the panel."
        )
        item = omni.kit.menu.utils.MenuItemDescription(name=TITLE, onclick_action=(self._ext_id, ACTION))
        self._menu = [item]
        omni.kit.menu.utils.add_menu_items(self._menu, MENU)

    def _observe(self, name: str, event_name: str, on_event: Any) -> None:
        observer = carb.eventdispatcher.get_eventdispatcher().observe_event(
            observer_name=f"umc {name}", event_name=event_name, on_event=on_event
        )
        self._observers.append(observer)

    def _toggle(self) -> None:
        if self._window is not None:
            self._window.toggle()

    def _on_update(self, event: Any) -> None:
        now = time.monotonic()
        if now < self._due or self._window is None:
            return
        self._due = now + self._period
        self._panel.refresh()
        note = self._links.follow(omni.usd.get_context().get_stage(), self._panel)
        self._window.update(note)

    def _on_stage_closing(self, event: Any) -> None:
        self._links.forget()
