# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host and a cluster that it may join, for tests: passes by the shipped playbook, and who saw the token.

The cluster is a real HTTPS server in this process. The token is where a vault would have it: in a file of the
controller, behind a lookup that counts its calls.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from tests.cluster.control_plane import Cluster
from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

HOST = "worker-01"
REFERENCE = "kubernetes/join-token"
LOOKUP = "{{{{ lookup('ansible.builtin.pipe', 'echo $0 >>{calls}; cat {token}') }}}}"
CONFIG = "/etc/bcd/config.toml"


class Pass:
    """What a run of the playbook left."""

    def __init__(self, played: controller.Played) -> None:
        self.rc = played.rc
        self.text = played.out + played.err
        self.tasks: list[dict[str, Any]] = played.events()["tasks"]
        stats = played.events()["stats"].get(HOST, {})
        self.recap = {key: stats[key] for key in ("ok", "changed", "failures", "rescued") if stats.get(key)}

    @property
    def whole(self) -> dict[str, Any]:
        """The last result of the whole host that is not kept back from the log."""
        found = [task["result"] for task in self.tasks if "units" in task["result"]]
        facts = [task["result"].get("ansible_facts", {}) for task in self.tasks]
        found += [fact["bcd_converge_status"] for fact in facts if "units" in fact.get("bcd_converge_status", {})]
        assert found, self.text
        last: dict[str, Any] = found[-1]
        return last

    @property
    def unit(self) -> dict[str, Any]:
        """What it says of k8s-join."""
        [found] = [unit for unit in self.whole["units"] if unit["unit"] == "k8s-join"]
        return dict(found)

    @property
    def steps(self) -> list[str]:
        """The sentences of its steps."""
        return [step["action"] for step in self.unit["steps"]]


class Site:
    """One host below `scratch`, by its profile, in front of a cluster. Its token is made up, and nobody else's."""

    def __init__(self, scratch: Path, cluster: Cluster, profile: str, **machine: Any) -> None:
        scratch.mkdir(exist_ok=True)
        self.scratch, self.cluster = scratch, cluster
        self.calls, self.vault = scratch / "lookups", scratch / "token"
        self.token = cluster.token(f"{secrets.token_hex(3)}.{secrets.token_hex(8)}")
        self.keep(self.token)
        kind = fleet.Hosts("worker", PROFILES[profile]._replace(**machine))
        self.inventory = fleet.make(str(scratch / "fleet"), [kind])
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.allow(f"{cluster.url}#sha256:{cluster.pin}")

    def keep(self, token: str) -> None:
        """Have a token where it is looked up."""
        self.vault.write_text(token, encoding="utf-8")

    def allow(self, *clusters: str) -> None:
        """What root's own configuration allows."""
        self.host.write(CONFIG, f'[kubernetes]\nallowed_clusters = "{",".join(clusters)}"\n', 0o640)

    def settings(self, **more: Any) -> dict[str, Any]:
        """The unit's settings for this cluster."""
        own = {"apiServer": self.cluster.url, "caCertSha256": self.cluster.pin, "joinTokenRef": REFERENCE}
        return {**own, **more}

    def lookups(self) -> int:
        """How often the token was looked up."""
        return len(self.calls.read_text(encoding="utf-8").splitlines()) if self.calls.exists() else 0

    def converge(self, units: dict[str, Any], *arguments: str, **variables: Any) -> Pass:
        """One pass by the playbook."""
        lookup = LOOKUP.format(calls=self.calls, token=self.vault)
        given = {"bcd_converge_join_token": lookup, "bcd_converge_units": units, **variables}
        extra = self.scratch / "variables.json"
        extra.write_text(json.dumps(given), encoding="utf-8")
        words = ("bettercompute.bcd.converge", "--extra-vars", f"@{extra}", *arguments)
        return Pass(controller.playbook(str(self.scratch), self.inventory, *words, as_json=True))

    def traces(self) -> list[str]:
        """The files of the host, the simulator's journals among them, that have the token or its secret part."""
        parts = (self.token.encode(), self.token.rpartition(".")[2].encode())
        found = []
        for folder, _folders, names in os.walk(self.host.tree):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path) and not path.startswith(f"{self.host.tree}/.sim"):
                    content = Path(path).read_bytes()
                    found += [path[len(self.host.tree) :]] if any(part in content for part in parts) else []
        return found


class Watch:
    """Looks at all command lines and environments of this machine, as often as it can, while its block runs."""

    def __init__(self, site: Site) -> None:
        self.parts = (site.token.encode(), site.token.rpartition(".")[2].encode())
        self.config = (site.host.read(CONFIG) or "").encode()
        self.told: set[str] = set()  # command lines and environments with the token
        self.joins = 0  # how often the site's kubeadm was seen to join
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_unused: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.01):
            for path in (*glob.glob("/proc/[0-9]*/cmdline"), *glob.glob("/proc/[0-9]*/environ")):
                content = _content(path)
                if b"kubeadm\0join" in content:
                    self.joins += _content(f"{os.path.dirname(path)}/root{CONFIG}") == self.config
                if any(part in content for part in self.parts):
                    self.told.add(content.replace(b"\0", b" ").decode(errors="replace"))


def _content(path: str) -> bytes:
    """Of a file that may go at any time."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
