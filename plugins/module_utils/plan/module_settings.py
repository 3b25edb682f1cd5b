# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of kernel-modules: which names and options are ever applied."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field
from .modprobe import PLAIN, parse_options, split_options
from .settings import strict
from .unit_names import KERNEL_MODULES as UNIT

FIELDS = (
    Field("load", "load", (list,)),
    Field("options", "options", (dict,)),
    Field("blacklist", "blacklist", (list,)),
)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# They let a passed-through device reach the host's memory. modprobe takes a module's options by any alias of it too, so
# they are refused under every name.
FORBIDDEN = frozenset(("enable_unsafe_noiommu_mode", "allow_unsafe_interrupts"))


class Settings(NamedTuple):
    """Names are with underscores, sorted; options map a module to its line for modprobe."""

    load: tuple[str, ...]
    options: Mapping[str, str]
    blacklist: tuple[str, ...]


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for a name, an option or a pair that is never applied."""
    wire = strict(UNIT, FIELDS, given)
    load = _names("load", wire.get("load", []))
    blacklist = _names("blacklist", wire.get("blacklist", []))
    options: dict[str, str] = {}
    for name, line in wire.get("options", {}).items():
        module = _name("options", name)
        if module in options:
            raise Refused(f"{UNIT}: options names the module {module} twice (- and _ count alike): keep one")
        options[module] = _option_line(module, line)
    both = sorted(set(load) & set(blacklist))
    if both:
        raise Refused(f"{UNIT}: {', '.join(both)} is in load and in blacklist: keep it in one of them")
    return Settings(load, options, blacklist)


def _names(field: str, names: list[Any]) -> tuple[str, ...]:
    return tuple(sorted({_name(field, name) for name in names}))


def _name(field: str, name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(f"{UNIT}: {field}: {name!r} is no module name (letters, digits, - and _, at most 64): correct it")
    return name.replace("-", "_")


def _option_line(module: str, line: Any) -> str:
    """The line, one blank between words; raises Refused for what modprobe and the kernel may read in two ways."""
    if not isinstance(line, str) or not line.strip() or not line.isprintable() or "\\" in line or "#" in line:
        raise Refused(f"{UNIT}: the options of {module} are {line!r}: give one printable line such as nested=1")
    words = split_options(line)
    for word in words:
        if not PLAIN.fullmatch(word):
            raise Refused(
                f"{UNIT}: the options of {module} have {word!r}, which can be read in more than one way: "
                'give each as name, name=value or name="a value with blanks", in ASCII'
            )
    keys = [key for key, _value in parse_options(line)]
    for key in keys:
        if key in FORBIDDEN:
            raise Refused(f"{UNIT}: {module} {key} is refused: it lets a passed-through device reach host memory")
        if keys.count(key) > 1:
            raise Refused(f"{UNIT}: the options of {module} give {key} twice (- and _ count alike): keep one")
    return " ".join(words)


def parameters_of(settings: Settings, module: str) -> tuple[str, ...]:
    """The parameters that the settings give a module: what a look reads."""
    return tuple(dict.fromkeys(key for key, _value in parse_options(settings.options.get(module, ""))))


def named(settings: Settings) -> tuple[str, ...]:
    """Every module that the settings name."""
    return tuple(sorted({*settings.load, *settings.options, *settings.blacklist}))
