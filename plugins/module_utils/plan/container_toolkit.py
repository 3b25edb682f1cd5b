# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit: NVIDIA's toolkit, the runtimes configured with it, and the vendor's CDI specification."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.plan import Field, Plan, Todo
from .container_devices import FOLDER, RULE, RULES
from .container_runtime import RUNTIMES
from .container_toolkit_config import CONFIG, ENVIRONMENT, OUTPUT
from .files import keep
from .settings import strict
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NamedTuple

    from ..core.plan import Past
    from ..core.seen import File
    from .container_toolkit_config import Kept
    from .packages_seen import Packages
else:
    from ..core.named import NamedTuple

FIELDS = (Field("cdi", "cdi", (bool,)), Field("runtimes", "runtimes", (list,)))
PROGRAM = "/usr/bin/nvidia-ctk"
INSTALL = "install nvidia-container-toolkit"  # the debt: nvidia-ctk is there before all of its packages are configured


class Settings(NamedTuple):
    """Whether GPUs are handed out by CDI, and the runtimes to configure; None: those that are installed."""

    cdi: bool = True
    runtimes: tuple[str, ...] | None = None


class Now(NamedTuple):
    """What the host shows. `packages` is looked at where nvidia-ctk is missing, or a killed pass was installing it.

    `runtimes` maps those that are installed to what they read, which may be known only later; podman reads nothing of
    ours; of a unit that is to go, it has containerd where a change of its files is not through. `config` and
    `environment` are the toolkit's files, `described` what the specification depends on, `rule` is our rule of udev,
    `unlinked` the device nodes without a link, and `programs` the paths of the runtimes' programs.
    """

    toolkit: bool
    packages: Packages | None
    runtimes: Mapping[str, Any]
    config: Kept | None = None
    refresh: bool = False
    environment: Kept | None = None
    described: Any = None
    rule: File | None = None
    unlinked: Any = ()
    programs: Mapping[str, str] = {}


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for a runtime that is none of ours."""
    wire = strict(UNIT, FIELDS, given)
    runtimes = wire.get("runtimes")
    wrong = [name for name in runtimes or () if name not in RUNTIMES]
    if wrong:
        named = ", ".join("null" if name is None else repr(name) for name in wrong)
        raise Refused(
            f"{UNIT}: runtimes: {named}: name some of {', '.join(RUNTIMES)}, or leave it out for "
            "those that are installed"
        )
    return Settings(wire.get("cdi", True), None if runtimes is None else tuple(dict.fromkeys(runtimes)))


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The toolkit first; then each file, the specification and each runtime in a lane of its own.

    A daemon that restarts starts its containers again: what they have their GPUs by is there before that.
    """
    todo = Todo()
    if now.packages is not None:
        from .container_toolkit_install import install, is_whole

        if not (now.toolkit and is_whole(now.packages)):
            install(todo, now.packages, past)
            return todo.plan()
    with todo.lane(RULE):
        keep(todo, RULE, RULES, now.rule)
    with todo.lane(FOLDER):
        if now.unlinked:
            from .container_devices_link import plan as plan_links

            plan_links(todo, now.unlinked, past)
    if settings.cdi:
        _plan_cdi(todo, settings, now, past)
    for name in settings.runtimes if settings.runtimes is not None else RUNTIMES:
        with todo.lane(name):
            _plan_runtime(todo, name, settings, now, past)
    if settings.runtimes is None and not now.runtimes:
        todo.note("no container runtime is installed: one that comes later is configured by the next pass")
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Nothing is undone; a restart that a killed pass owes is made, and what it left half installed is finished."""
    from .container_toolkit_absent import plan as plan_absent

    return plan_absent(now, past)


def _plan_runtime(todo: Todo, name: str, settings: Settings, now: Now, past: Past) -> None:
    named = settings.runtimes is not None
    if name not in now.runtimes:
        if named:
            todo.wait(
                "NotReady", f"{UNIT}: {name} is named in runtimes and is not installed: install it, or take it off"
            )
        return
    seen = now.runtimes[name]
    if name == "containerd":
        from .containerd import plan as plan_containerd

        plan_containerd(todo, seen, settings.cdi, named, past)
    elif name == "docker":
        from .docker import plan as plan_docker

        plan_docker(todo, seen, settings.cdi, named, past)
    elif name == "crio":
        from .crio import plan as plan_crio

        plan_crio(todo, seen, settings.cdi, past)


def _plan_cdi(todo: Todo, settings: Settings, now: Now, past: Past) -> None:
    from .cdi import ABOVE_EVERYONE
    from .container_toolkit_config import plan_cdi_only, plan_steering
    from .container_toolkit_spec import plan as plan_spec

    with todo.lane(CONFIG):
        if now.config is not None:
            plan_cdi_only(todo, now.config)
    with todo.lane(ENVIRONMENT):
        if now.refresh and now.environment is not None:
            plan_steering(todo, now.environment)
    with todo.lane(OUTPUT):
        version = plan_spec(todo, now.described, past)
        if version in ABOVE_EVERYONE:
            from .container_toolkit_support import note

            named = settings.runtimes if settings.runtimes is not None else RUNTIMES
            note(todo, version, {name: now.programs[name] for name in named if name in now.programs}, past)
