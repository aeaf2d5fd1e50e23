# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A patch for slow imports: modules that a command does not use are loaded only when something reads them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

LATER = (
    *("newton.controllers", "newton.ik", "newton.sensors", "newton.viewer"),
    *("isaaclab.actuators.newton", "trimesh"),
)
"""Parts that ``newton`` imports when it is imported itself; what no cfg needs, but a simulation does."""

_LOADING = threading.RLock()


def defer_unused_imports() -> None:
    """Let the commands of ``umc`` import torch and Newton without the parts that they do not use.

    What: rsl_rl imports tensordict, which registers functions with ``torch._dynamo``; optimizers ask ``torch._dynamo``
    not to compile them. Newton imports all its parts.
    Why: this takes a large part of the processor time from a command to the first env step (``benchmarks/start.py``).
    The patch: such a module is loaded when an attribute of it is read. What is registered with ``torch._dynamo`` before
    that is kept and registered then, so ``torch.compile`` works as before.
    When it can go: once tensordict, torch.optim, Newton and Isaac Lab import these parts lazily themselves.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        dynamo = _Dynamo()
        stand_ins = {name: getattr(dynamo, name) for name in ("allow_in_graph", "assume_constant_result", "disable")}
        stand_ins["graph_break"] = _nothing
        loaders = {**dict.fromkeys(LATER, ({}, _nothing)), "torch._dynamo": (stand_ins, dynamo.register)}
        sys.meta_path.insert(0, _Finder(loaders))


def _nothing(*_: Any) -> None:
    pass


class _Dynamo:
    """What stands in for functions of ``torch._dynamo`` until it is loaded: nothing is compiled before."""

    def __init__(self) -> None:
        self._allowed: list[Any] = []
        self._disabled: list[Any] = []

    def allow_in_graph(self, function: Any) -> Any:
        self._allowed.append(function)
        return function

    def assume_constant_result(self, function: Any) -> Any:
        function._dynamo_marked_constant = True  # all that torch._dynamo does
        return function

    def disable(self, fn: Any = None, recursive: bool = True, **options: Any) -> Any:
        if fn is None or options != {"wrapping": False}:  # not from torch._compile
            module: Any = sys.modules["torch._dynamo"]
            _load(module)
            return module.disable(fn, recursive, **options)
        self._disabled.append(fn)
        return fn

    def register(self, module: Any) -> None:
        """Hand over to ``torch._dynamo`` what was registered before it was loaded."""
        for function in self._disabled:
            vars(function).pop("__dynamo_disable", None)  # torch._compile asks again
        for function in self._allowed:
            module.allow_in_graph(function)


class _Finder(MetaPathFinder):
    """Find the modules that are loaded later."""

    def __init__(self, modules: dict[str, tuple[dict[str, Any], Callable[[ModuleType], None]]]) -> None:
        self._modules = modules

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module that is loaded later, or None."""
        if name not in self._modules or (spec := PathFinder.find_spec(name, path, target)) is None:
            return None
        if spec.loader is not None:
            spec.loader = _LaterLoader(spec.loader, *self._modules[name])
        return spec


class _LaterLoader(Loader):
    """Make a module that runs its code when an attribute is read, then calls ``after``."""

    def __init__(self, loader: Loader, stand_ins: dict[str, Any], after: Callable[[ModuleType], None]) -> None:
        self.loader, self.stand_ins, self.after = loader, stand_ins, after

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self.stand_ins)
        vars(module).pop("__path__", None)  # the import of a submodule reads it, and so runs the module's code first
        module.__class__ = _Later


class _Later(ModuleType):
    """A module whose code has not run, or not to its end."""

    def __getattr__(self, name: str) -> Any:
        _load(self)
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> Iterable[str]:
        _load(self)
        return ModuleType.__dir__(self)


def _load(module: ModuleType) -> None:
    """Run the code of a module; another thread waits for it, and the next reader tries again after an error."""
    with _LOADING:
        spec = module.__spec__
        if spec is None or not isinstance(later := spec.loader, _LaterLoader):
            return
        spec.loader = module.__loader__ = later.loader
        if spec.submodule_search_locations is not None:
            module.__path__ = spec.submodule_search_locations
        try:
            later.loader.exec_module(module)
        except BaseException:
            spec.loader = module.__loader__ = later
            raise
        later.after(module)
        module.__class__ = ModuleType
