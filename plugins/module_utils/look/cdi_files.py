# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies in the folders of CDI, and of NVIDIA in /dev, by itself: sights (Host.sight), each a narrow question.

Holds and drivers of pods lay specifications beside the vendor's and take them away, and what else is in /dev comes and
goes: none of that is a difference to a unit that asks here.
"""

from __future__ import annotations

from ..core.errors import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host

FOLDER = "/etc/cdi"
ENDINGS = (".json", ".yaml", ".yml")
HOLDS = "bcd-"  # our own specifications begin so, and have a kind of ours
VENDOR_KIND = "nvidia.com/gpu"
KEYS = ("cdiVersion", "kind")  # what every specification has


def runtime_folder(host: Host) -> str:
    """The folder of specifications that do not outlast a boot, by its path without links: root writes through none."""
    return "/run/cdi" if (host.link("/var/run") or "").rstrip("/").endswith("run") else "/var/run/cdi"


def vendor_texts(host: Host) -> list[tuple[str, str]]:
    """Path and text of each file in both folders that names NVIDIA's kind; a later one outranks those before it."""
    found = ((path, _text(host, path)) for path in _files(host))
    return [(path, text) for path, text in found if text is not None and VENDOR_KIND in text]


def broken(host: Host, known: list[str]) -> list[tuple[str, str]]:
    """The path of each file in the folders that is no specification of any kind, and what is wrong with it.

    `known` are paths that are told of elsewhere.
    """
    others = [(path, _fault(path, _text(host, path))) for path in _files(host) if path not in known]
    return [(path, fault) for path, fault in others if fault]


def device_nodes(host: Host) -> list[str]:
    """NVIDIA's device nodes, those of MIG devices among them; sorted."""
    nodes = [f"/dev/{name}" for name in host.names("/dev") if name.startswith("nvidia")]
    return sorted({*nodes, *(f"{node}/{name}" for node in nodes if "-caps" in node for name in host.names(node))})


def majors(host: Host) -> str:
    """The lines of /proc/devices about NVIDIA's character devices."""
    characters = (host.read("/proc/devices") or "").partition("Block")[0]
    return "".join(line for line in characters.splitlines(keepends=True) if "nvidia" in line)


def targets(host: Host, links: list[str]) -> list[str | None]:
    """Where each link leads, as written; None for what is absent or no link."""
    return [host.link(link) for link in links]


def lacking(host: Host, paths: list[str]) -> list[str]:
    """Those of the paths that this host lacks."""
    return [path for path in paths if not host.exists(path)]


def _files(host: Host) -> list[str]:
    """Every specification in both folders, by its ending, that is not of a hold."""
    folders = (FOLDER, runtime_folder(host))
    names = [(folder, name) for folder in folders for name in host.names(folder)]
    return [f"{folder}/{name}" for folder, name in names if name.endswith(ENDINGS) and not name.startswith(HOLDS)]


def _text(host: Host, path: str) -> str | None:
    """The text of a file; None of a folder, such as Docker makes of a mount that is missing: runtimes pass it over."""
    try:
        return host.read(path) or ""
    except Unreadable:
        if host.exists(f"{path}/."):
            return None
        raise


def _fault(path: str, text: str | None) -> str:
    """Why it is no specification, "" where it may be one: YAML is not read here beyond the words of its keys."""
    if text is None:
        return "it is a folder"
    if not text.strip():
        return "it is empty"
    spec = None
    if path.endswith(".json"):
        import json

        try:
            spec = json.loads(text)
        except (ValueError, RecursionError) as fault:
            return f"it is no JSON: {fault}"
        if not isinstance(spec, dict):
            return "it is no mapping"
    missing = [key for key in KEYS if key not in (text if spec is None else spec)]
    return f"it has no {' and no '.join(missing)}" if missing else ""
