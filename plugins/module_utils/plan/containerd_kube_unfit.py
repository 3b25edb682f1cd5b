# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A containerd that a kubelet cannot use, and why; and what is said of one that it can."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.plan import Todo
from . import toml
from .containerd_cni import alone
from .containerd_drop_in import is_off, texts_of
from .containerd_merge import Table, knows_cdi
from .containerd_seen import CNI, CONFIG, DEBIAN_CNI, SOCKET, Containerd
from .containerd_unfit import having
from .unit_names import K8S_JOIN as UNIT


def refuse_files(now: Containerd, main: Table) -> None:
    """Raise Refused for a file that turns the CRI plugin off, and for settings without a version."""
    for path, text in texts_of(now):
        if is_off(toml.parse(text, path)):
            raise _off(path, text)
    if main and "version" not in main:
        raise Refused(
            f"{UNIT}: {CONFIG} has settings and no version, which makes it one of version 1, that no drop-in can "
            "extend: convert it (containerd config migrate prints it in a later version) and run again"
        )


def _off(path: str, text: str) -> Refused:
    """A file that turns the CRI plugin off, as Docker's packaged one does, with the line that does."""
    span = toml.document(text, path).values[("disabled_plugins",)]
    line = text.count("\n", 0, span[0]) + 1
    return Refused(
        f"{UNIT}: {path} line {line} turns containerd's CRI plugin off, which the kubelet needs "
        f"({' '.join(text.splitlines()[line - 1].split())}): take the plugin out of that list, or the line out of the "
        "file where it lists nothing else, and run again"
    )


def without_cri(now: Containerd, has_cri: bool) -> Refused:
    """Why there is no CRI for the kubelet: there is none at all, or it is where the kubelet does not look."""
    if not has_cri:
        return Refused(f"{UNIT}: this containerd has no CRI plugin, which the kubelet needs: install one that has it")
    return Refused(
        f"{UNIT}: containerd listens at {now.address}, and the kubelet is told {SOCKET}: set address in [grpc] of "
        f"{CONFIG} to that, and run again"
    )


def refuse_mixed(now: Containerd, main: Table) -> None:
    """containerd 2.0 to 2.2 reads tables of version 2 only where no file has those of version 3; later ones each."""
    mine = main.get("version", 2)
    for path in having(now):
        other = next(toml.parse(one.text, one.path).get("version", 1) for one in now.read if one.path == path)
        if (mine >= 3) != (other >= 3):
            raise Refused(
                f"{UNIT}: {path} is of version {other} and {CONFIG} of version {mine}, and this containerd reads the "
                f"tables of one of them alone: write it in version {mine}, or make it anew by the tool that did"
            )


def note(todo: Todo, now: Containerd, base: Table, cri: Table) -> None:
    """Say what pods go without, and where networks put plugins that containerd does not find."""
    if not knows_cdi(cri):
        todo.note(
            "this containerd has no CDI, which came with 1.7: pods get GPUs by the runtime nvidia alone, and by no "
            "driver or plugin that hands them out by CDI"
        )
    if alone(now, base)[0] and {DEBIAN_CNI, CNI} <= {*now.cni}:
        todo.note(
            f"{CONFIG} has containerd look for CNI plugins in {DEBIAN_CNI} alone, and there are some in {CNI} too, "
            f"where networks of clusters put theirs: set bin_dir to the folder of yours"
        )
