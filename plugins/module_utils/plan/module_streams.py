# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module streams of dnf: the wanted one enabled, and another that is enabled reset first, in a step of its own."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, command_line, fail, known_after, run
from .packages_dnf import Stream, asks_streams, parse_streams, render_streams
from .packages_index import REFRESHED


def enable(todo: Todo, past: Past, module: str, stream: str, refreshed: str = "") -> bool:
    """Plan that the stream is enabled; whether it is, or will be.

    A default counts for nothing, only what is enabled. Where the index has no such stream, a failed step names those
    that it has; with `refreshed`, what `packages.refresh` returned, it is known after the refresh.
    """
    streams = parse_streams(module, past.ask(asks_streams(module)).out)
    found = next((one for one in streams if one.name == stream), None)
    if found is None:
        _miss(todo, module, stream, streams, refreshed)
        return False
    if found.enabled:
        return True
    others = [one.name for one in streams if one.enabled]
    if others or found.disabled:
        what = f"{module}:{others[0]}, which is enabled" if others else f"the module {module}, which is disabled"
        cleared = tuple(one._replace(enabled=False, disabled=False) for one in streams)
        todo.add(
            run(
                ("dnf", "-y", "module", "reset", module),
                f"reset {what}, before {module}:{stream} is enabled",
                effects=_shows(module, cleared),
            )
        )
    after = tuple(one._replace(enabled=one.name == stream, disabled=False) for one in streams)
    todo.add(
        run(
            ("dnf", "-y", "module", "enable", f"{module}:{stream}"),
            f"enable the module stream {module}:{stream}",
            effects=_shows(module, after),
        )
    )
    return True


def _shows(module: str, streams: tuple[Stream, ...]) -> tuple[Effect, ...]:
    return (Effect("answers", command_line(asks_streams(module)), render_streams(module, streams)),)


def _miss(todo: Todo, module: str, stream: str, streams: tuple[Stream, ...], refreshed: str) -> None:
    action = f"enable the module stream {module}:{stream}"
    if refreshed:
        todo.add(known_after(action, REFRESHED))
        return
    there = f"it has {', '.join(one.name for one in streams)}" if streams else f"it has no module {module} at all"
    todo.add(
        fail(
            action,
            f"there is no stream {module}:{stream} in the package index of this host; {there}: ask for a branch that "
            "has a stream, or add NVIDIA's repository to the host's image",
        )
    )
