# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of `dataclasses` what the GPUs' state needs, without what that costs to import.

A simulated host's nvidia-smi is a process a call, and a pass calls it dozens of times. Type checkers read the real one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field

    __all__ = ["asdict", "dataclass", "field"]
else:

    class Made:
        """A default that each value gets anew."""

        def __init__(self, make: Callable[[], Any]) -> None:
            self.make = make

    def field(default_factory: Callable[[], Any]) -> Made:
        """The default of a field that is a list or a dictionary."""
        return Made(default_factory)

    class Values:
        """What a class has from `dataclass`."""

        def __init__(self, *given: Any, **named: Any) -> None:
            values = {**dict(zip(self.field_names, given)), **named}
            if len(given) + len(named) != len(values) or not set(values) <= set(self.field_names):
                raise TypeError(f"{type(self).__name__} has the fields {', '.join(self.field_names)}, each once")
            for name in self.field_names:
                if name not in values and name not in self.defaults:
                    raise TypeError(f"{type(self).__name__} needs {name}")
                value = values.get(name, self.defaults.get(name))
                setattr(self, name, value.make() if isinstance(value, Made) else value)

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and vars(other) == vars(self)

        __hash__ = None

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.field_names)})"

    def dataclass(kind: type) -> type:
        """Have a class hold its annotated fields."""
        kind.field_names = tuple(kind.__annotations__)
        kind.defaults = {name: vars(kind)[name] for name in kind.field_names if name in vars(kind)}
        for name in ("__init__", "__eq__", "__hash__", "__repr__"):
            setattr(kind, name, vars(Values)[name])
        return kind

    def asdict(value: Any) -> Any:
        """As plain values, copied; lists may hold values of such classes."""
        if hasattr(value, "field_names"):
            return {name: asdict(getattr(value, name)) for name in value.field_names}
        if isinstance(value, list):
            return [asdict(one) for one in value]
        return dict(value) if isinstance(value, dict) else value
