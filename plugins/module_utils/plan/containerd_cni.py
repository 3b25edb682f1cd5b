# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where containerd looks for the plugins of CNI.

Debian's configuration names the folder of Debian's plugins. Those that come with Kubernetes' own packages are in
another one, and a containerd that looks in the first alone finds none.
"""

from __future__ import annotations

from typing import Any

from . import toml
from .containerd_drop_in import texts_of
from .containerd_merge import NEW_CRI, OLD_CRI, Table, below, is_modern, strings
from .containerd_seen import CNI, DEBIAN_CNI, Containerd


def moved(now: Containerd, base: Table) -> Table:
    """Where CNI's plugins are, for a configuration that looks in Debian's folder alone, and there are none there.

    What has gone over to the other folder stays there: a cluster's own network puts its plugins there too.
    """
    key, value = alone(now, base)
    if not key or CNI not in now.cni or (DEBIAN_CNI in now.cni and not _has_moved(now)):
        return {}
    return {"cni": {key: CNI if key == "bin_dir" else [*strings(value), CNI]}}


def alone(now: Containerd, base: Table) -> tuple[str, Any]:
    """The key, as files have it, that names Debian's folder of plugins as the only one, and its value; "" for none.

    containerd 2.1 shows `bin_dir` as `bin_dirs`, and does not start where files have both.
    """
    found: dict[str, Any] = {}
    for path, text in texts_of(now):
        plugins = toml.parse(text, path).get("plugins", {})
        for name in (OLD_CRI, NEW_CRI):
            if name not in plugins:
                continue
            cni = below(plugins, name, "cni") or {}
            here: dict[str, Any] = {key: cni[key] for key in ("bin_dir", "bin_dirs") if key in cni}
            found = {**found, **here} if is_modern(base) else here
    for key, alone in (("bin_dir", DEBIAN_CNI), ("bin_dirs", [DEBIAN_CNI])):
        if found.get(key) == alone:
            return key, alone
    return "", None


def _has_moved(now: Containerd) -> bool:
    """Whether our drop-in names the folder already."""
    plugins = toml.parse(now.ours.text, now.path).get("plugins", {}) if now.ours is not None else {}
    cni = next((below(plugins, name, "cni") for name in (OLD_CRI, NEW_CRI) if name in plugins), None) or {}
    return cni.get("bin_dir") == CNI or CNI in strings(cni.get("bin_dirs"))
