# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member's kubelet that does not run or is not enabled, and its certificate that is over or about to be."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Step, fail
from .kube_kept import SOON, START, Kept
from .kube_seen import SERVICE
from .systemd import control

SETTLE = 30.0  # seconds for a kubelet that was started to stay up


def dead(now: Kept) -> Step:
    """Say what an admin has to do: no pass joins a member whose credentials are dead again by itself."""
    joined = now.joined
    if joined.expires:
        since = -1 - now.left
        ago = f"{since} days" if since > 1 else "a day" if since else "less than a day"
        what = f"{joined.certificate or 'in kubelet.conf'} ended {ago} ago by this machine's clock"
    else:
        what = f"{joined.certificate or 'in kubelet.conf'} is not there"
    node = joined.node or "of this machine"
    return fail(
        "keep the kubelet's client certificate",
        f"this machine has joined {joined.server}, but the kubelet's client certificate {what}, so that the cluster "
        f"does not know it any more: have an admin of the cluster delete the node {node} and make "
        "a new join token, take k8s-join out of the section (state: absent) and converge, then put it back with the "
        "token",
        retryable=False,
    )


def keep_up(todo: Todo, now: Kept, past: Past) -> None:
    """Have it enabled and running, and say where its certificate is not renewed."""
    kubelet = now.kubelet
    if kubelet.load == "not-found":
        todo.wait("NotReady", f"there is no {SERVICE}, though this machine has joined: install kubelet and run again")
        return
    if kubelet.is_masked:
        from .kube_entry import masked

        todo.add(masked())
        return
    if kubelet.enabled in ("disabled", "enabled-runtime"):
        todo.add(control("enable", SERVICE))
    if now.left < SOON:
        todo.note(
            f"the kubelet's client certificate ends in {now.left} days and was not renewed: see that the cluster "
            "approves its certificate requests"
        )
    if kubelet.runs:
        return
    if kubelet.active == "activating" or START in past.vain:
        said = past.given.masked(past.tried.get(START) or now.said) or "nothing"
        todo.wait(
            "NotReady",
            f"{SERVICE} does not stay up ({kubelet.active or 'unknown'}), and its last words are: {said}: mend what "
            f"they name (journalctl -u {SERVICE}) and run again",
        )
        return
    start = control("start", SERVICE, barrier=True, settle=SETTLE, tries=START)
    todo.add(start._replace(retry=START in past.tried))
