# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory that is, or becomes, a worker of the stand-in cluster of tests/cluster.

with Cluster() as cluster:
    host = KubeHost(cluster)
    cluster.token()
    ... the unit k8s-join with host.settings() ...
    assert cluster.labels("gpu-01") == {"team": "ml"}
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import https
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File, Step
from tests.cluster import kubelet, worker
from tests.cluster.control_plane import Cluster
from tests.cluster.kubeadm import Answer as Said
from tests.cluster.kubeadm import kubeadm as run_kubeadm
from tests.cluster.kubectl import kubectl as run_kubectl
from tests.gpu.fake import RELEASE
from tests.gpu.fake_systemd import systemctl as gpu_systemctl
from tests.gpu.model import Machine
from tests.unit import container_host
from tests.unit.container_host import ContainerHost
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.package_machine import PackageHost, Shelf, apt_host
from tests.unit.package_sources import KEY, Repository

UNIT = "kubelet.service"
KUBE = ("kubeadm", "kubelet", "kubectl")
PROGRAMS = {**{name: f"/usr/bin/{name}" for name in KUBE}, "containerd": "/usr/bin/containerd"}
JOIN_FILE = "/var/lib/bcd-hostconfig/k8s-join.yaml"
OFFERED = {  # by the distribution
    "containerd": ["1.7.24~ds1-6+b4"],
    "conntrack": ["1:1.4.8-2"],
    "iptables": ["1.8.11-2"],
}
HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
PATIENCE = 2.0  # seconds of a GET, whatever was asked
BRIDGE = "/proc/sys/net/bridge/bridge-nf-call-"
BARE = {
    "/proc/sys/net/ipv4/ip_forward": "0\n",
    "/proc/sys/net/ipv6/conf/all/forwarding": "0\n",
    f"/lib/modules/{RELEASE}/modules.dep": "kernel/fs/overlayfs/overlay.ko:\nkernel/net/bridge/br_netfilter.ko:\n",
    f"/lib/modules/{RELEASE}/modules.builtin": "",
    "/proc/filesystems": "nodev\tproc\n\text4\n",
    "/proc/mounts": "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n",
    "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:4 / /proc rw - proc proc rw\n",
    "/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n",
    "/etc/fstab": "/dev/sda1 / ext4 defaults 0 1\n",
    "/proc/swaps": HEAD,
    "/var/lib/etcd/somebody-elses": "data",
    "/etc/cni/net.d/87-podman.conflist": "{}",
}
SERVICE = "[Service]\nExecStart=/usr/bin/{}\n[Install]\nWantedBy=multi-user.target\n"


class KubeHost(ContainerHost):
    """`cluster` is the one that root's configuration allows.

    `installed`: kubeadm, kubelet and kubectl are there, of `version`; `containerd` is the version of a containerd that
    is there ("" for none). `kubelet` is the state that systemd shows of its service, `journal` what it said.
    `dies_at` names a stage of kubeadm (see Worker.stage) at which the machine loses power. `typed` are
    the command lines of kubeadm and kubectl; of a join once it has ended.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        installed: bool = True,
        version: str = "1.31.14",
        containerd: str = "1.7.24",
        files: Mapping[str, str] | None = None,
        machine: Machine | None = None,
        name: str = "gpu-01",
    ) -> None:
        self.cluster = cluster
        self.version = version
        self.kubelet = "inactive"
        self.journal: list[str] = []
        self.dies_at = ""
        self.typed: list[tuple[str, ...]] = []
        self.stuck: set[str] = set()  # mounts that cannot be taken off
        self.removed_pods = 0
        self.cgroups = 2
        self.missing: set[str] = set()  # programs that kubeadm looks for
        self.verification: tuple[str, ...] = ()
        self.kubelet_fault = ""  # what the kubelet dies of
        self.kubelet_version = ""  # where it is not kubeadm's
        if machine is None:
            machine = Machine.from_products([], "550.163.01")
            machine.unload()
            machine.library = machine.disk = None
        base = {**BARE, "/proc/sys/kernel/hostname": f"{name}\n", **allowed(cluster), **(files or {})}
        super().__init__(machine, {"containerd": containerd} if containerd else {}, base, toolkit=False)
        if machine.library is None:
            del self.programs["nvidia-smi"]
        self.worker = HostWorker(self)
        shelf = Shelf({name: list(versions) for name, versions in OFFERED.items()})
        self.apt: PackageHost = apt_host(shelf, "debian", on_install=lambda _apt, package: self.bring(package))
        for program in ("dpkg-query", "apt-cache", "apt-get", "apt-mark", "dpkg"):
            self.programs[program] = _of_apt
        self.programs.update({"systemctl": systemctl, "journalctl": journalctl, "modprobe": modprobe})
        self.programs.update(
            {"swapoff": swapoff, "swapon": swapon, "rm": rm, "grep": grep, "losetup": nothing, "mount": nothing}
        )
        for package in KUBE if installed else ():
            self.apt.come(package, f"{version}-1.1")
        if containerd:
            self.apt.come("containerd", f"{containerd}~ds1-6+b4")
        for minor in range(24, 41):
            address = f"https://pkgs.k8s.io/core:/stable:/v1.{minor}/deb"
            self.sites[f"{address}/Release.key"] = Answer(200, KEY, "OK")
            own = [version] if version.startswith(f"1.{minor}.") else []
            carried = {name: [f"{one}-1.1" for one in (f"1.{minor}.0", *own)] for name in KUBE}
            shelf.net[address] = Repository(carried)

    # -- what tests ask and do

    def settings(self, **more: Any) -> dict[str, Any]:
        """Settings of the unit for its cluster."""
        found = {"apiServer": self.cluster.url, "caCertSha256": self.cluster.pin, "joinTokenRef": "join-token"}
        return {**found, "kubernetesVersion": ".".join(self.version.split(".")[:2]), **more}

    def bring(self, package: str) -> None:
        """What a package brings to the disk."""
        if package == "kubelet":
            self.services.add(UNIT, SERVICE.format("kubelet"))
            self.programs["kubelet"] = kubelet_version
        elif package in ("kubeadm", "kubectl"):
            self.programs[package] = kubeadm if package == "kubeadm" else kubectl
        elif package == "containerd":
            self.versions.setdefault("containerd", "1.7.24")
            self.running.add("containerd")
            self.programs["containerd"] = containerd
            self.servers[container_host.SOCKET] = self.serve
            self.services.add("containerd.service", SERVICE.format("containerd"), active=True)
            if self.text(container_host.CONFIG) is None:
                self.put(container_host.CONFIG, container_host.DEBIAN)

    def swap_on(self, path: str = "/swap.img") -> None:
        """Have swap, of /etc/fstab."""
        self.put(path, "")
        self.put("/etc/fstab", f"{self.text('/etc/fstab')}{path} none swap sw 0 0\n")
        self.put("/proc/swaps", f"{HEAD}{path}\t\t\t\tfile\t\t2097148\t\t0\t\t-2\n")

    def mount(self, path: str, kind: str = "nfs4", stuck: bool = False) -> None:
        """Have something mounted."""
        self.put("/proc/mounts", f"{self.text('/proc/mounts')}server:/export {path} {kind} rw 0 0\n")
        line = f"9 1 0:50 / {path} rw - {kind} server:/export rw\n"
        self.put("/proc/self/mountinfo", f"{self.text('/proc/self/mountinfo')}{line}")
        if stuck:
            self.stuck.add(path)

    def join_by_hand(self, cluster: Cluster | None = None, **more: Any) -> Said:
        """Somebody joins it with kubeadm, to this cluster or another."""
        other = cluster or self.cluster
        bootstrap = {
            "apiServerEndpoint": other.endpoint,
            "token": other.token(),
            "caCertHashes": [f"sha256:{other.pin}"],
        }
        api = "v1beta4" if int(self.version.split(".")[1]) >= 31 else "v1beta3"
        node = {"criSocket": "unix:///run/containerd/containerd.sock", **more}
        head = {"apiVersion": f"kubeadm.k8s.io/{api}", "kind": "JoinConfiguration"}
        import json

        self.put(
            "/root/join.yaml",
            json.dumps({**head, "discovery": {"bootstrapToken": bootstrap}, "nodeRegistration": node}),
        )
        forward = self.files["/proc/sys/net/ipv4/ip_forward"]
        self.put("/proc/sys/net/ipv4/ip_forward", "1\n")
        said = run_kubeadm(self.worker, ("kubeadm", "join", "--config", "/root/join.yaml"))
        del self.files["/root/join.yaml"]
        self.files["/proc/sys/net/ipv4/ip_forward"] = forward
        return said

    def holds(self, secret: str) -> list[str]:
        """Where a text stands: paths, and calls or questions that name it."""
        found = [path for path, file in sorted(self.files.items()) if secret in file.text]
        return [*found, *(call for call in [*self.calls, *map(shlex.join, self.asked)] if secret in call)]

    def boot(self) -> None:
        """Reboot."""
        self.kubelet = "inactive"
        enabled = self.services.enabled(UNIT)
        super().boot()
        if enabled:
            self.start_kubelet()

    # -- the kubelet

    def start_kubelet(self) -> None:
        """Its service starts: it stays up, or is started again and again."""
        self._kubelet("active" if kubelet.start(self.worker) else "activating")
        self.tick()

    def stop_kubelet(self) -> None:
        """Its service stops."""
        self._kubelet("inactive")

    def _kubelet(self, state: str) -> None:
        self.kubelet = self.services.state[UNIT] = state

    def tick(self) -> None:
        """Time goes by for the kubelet."""
        if self.kubelet == "activating" and kubelet.start(self.worker):
            self._kubelet("active")
        if self.kubelet == "active":
            kubelet.sync(self.worker)

    # -- Host

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.tick()

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        if url in self.sites:
            return super().get(url, timeout, ca, certificate)
        self.asked.append(("GET", url))
        self.tick()
        if not certificate:
            return https.get(url, min(timeout, PATIENCE), ca)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
            pair.write(super().read(certificate) or "")
            pair.flush()
            return https.get(url, min(timeout, PATIENCE), ca, pair.name)

    def _call(self, argv: tuple[str, ...]) -> Answer:
        return join(self, argv) if argv[3:4] == ("kubeadm-join",) else super()._call(argv)

    def act(self, step: Step) -> None:
        super().act(step)
        self.stdin = ""  # nothing here keeps what may have been a secret


class HostWorker(worker.Worker):
    """The machine as kubeadm, kubelet and kubectl see it."""

    pace = 5.0

    def __init__(self, host: KubeHost) -> None:
        self.host = host

    @property
    def version(self) -> str:  # type: ignore[override]
        return self.host.version

    @property
    def kubelet_version(self) -> str:  # type: ignore[override]
        return self.host.kubelet_version or self.host.version

    @property
    def hostname(self) -> str:  # type: ignore[override]
        return (self.host.text("/proc/sys/kernel/hostname") or "").strip()

    @property
    def cgroups(self) -> int:  # type: ignore[override]
        return self.host.cgroups

    @property
    def has_runtime_config(self) -> bool:  # type: ignore[override]
        return not self.host.versions.get("containerd", "").startswith("1.")

    @property
    def kubelet_fault(self) -> str:  # type: ignore[override]
        return self.host.kubelet_fault

    @property
    def verification(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.host.verification

    def read(self, path: str) -> str | None:
        return self.host.read(path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        self.host.links.pop(path, None)
        self.host.files[path] = File(text, mode)

    def link(self, path: str, target: str) -> None:
        self.host.files.pop(path, None)
        self.host.links[path] = target

    def remove(self, path: str) -> None:
        for known in (self.host.files, self.host.links):
            for name in [name for name in known if name == path or name.startswith(path + "/")]:
                del known[name]

    def exists(self, path: str) -> bool:
        return self.host.exists(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self.host.names(path)

    def has(self, program: str) -> bool:
        return program not in self.host.missing

    def cri_fault(self) -> str:
        where = 'for endpoint "unix:///run/containerd/containerd.sock": rpc error: code ='
        if "containerd" not in self.host.running:
            why = 'Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix '
            return f'validate CRI v1 runtime API {where} {why}/run/containerd/containerd.sock: connect: no such file"'
        off = {"cri", "io.containerd.grpc.v1.cri"} & set(self.host.dump()["disabled_plugins"])
        unknown = "Unimplemented desc = unknown service runtime.v1.RuntimeService"
        return f"validate CRI v1 runtime API {where} {unknown}" if off else ""

    def is_taken(self, port: int) -> bool:
        return port in (10248, 10250) and self.host.kubelet == "active"

    def is_enabled(self) -> bool:
        return self.host.services.enabled(UNIT)

    def is_healthy(self) -> bool:
        return self.host.kubelet == "active"

    def start_kubelet(self) -> None:
        self.host.start_kubelet()

    def stop_kubelet(self) -> None:
        self.host.stop_kubelet()

    def log(self, line: str) -> None:
        self.host.journal.append(line)

    def unmount(self, path: str) -> bool:
        if path in self.host.stuck:
            return False
        for table, column in (("/proc/mounts", 1), ("/proc/self/mountinfo", 4)):
            lines = (self.host.text(table) or "").splitlines(keepends=True)
            self.host.put(table, "".join(line for line in lines if line.split()[column] != path))
        return True

    def remove_pods(self) -> None:
        self.host.removed_pods += 1

    def clock(self) -> float:
        return self.host.clock()

    def time(self) -> int:
        return self.host.time()

    def sleep(self, seconds: float) -> None:
        self.host.sleep(seconds)

    def stage(self, name: str) -> None:
        if name == self.host.dies_at:
            self.host.dies_at = ""
            self.host.stop_kubelet()
            raise Killed(f"kubeadm: {name}")


def allowed(*clusters: Cluster) -> dict[str, str]:
    """Root's configuration that allows them."""
    listed = ",".join(f"{cluster.url}#sha256:{cluster.pin}" for cluster in clusters)
    return {"/etc/bcd/config.toml": f'[kubernetes]\nallowed_clusters = "{listed}"\n'}


def of(host: FakeHost) -> KubeHost:
    """The host, as what it is."""
    assert isinstance(host, KubeHost)
    return host


# -- programs


def nothing(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    return Answer(0, "")


def containerd(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """The daemon, as its service starts it, and what it tells of its configuration."""
    if argv == ("containerd",):
        of(host).running.add("containerd")
        return Answer(0, "")
    return container_host.containerd(host, argv)


def _of_apt(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """apt over the shelf, and the repositories that the files of this host name."""
    apt = of(host).apt
    apt.files, apt.links = host.files, host.links
    return apt.programs[argv[0]](apt, argv)


def rm(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """rm -f -- PATH..."""
    for path in argv[argv.index("--") + 1 :]:
        host.files.pop(path, None)
        host.links.pop(path, None)
    return Answer(0, "")


def kubeadm(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    of(host).typed.append(argv)
    said = run_kubeadm(of(host).worker, argv, host.stdin)
    return Answer(said.rc, said.out, said.err)


def kubelet_version(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """kubelet --version."""
    return Answer(0, f"Kubernetes v{of(host).worker.kubelet_version}\n")


def kubectl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    of(host).typed.append(argv)
    said = run_kubectl(of(host).worker, argv)
    of(host).tick()
    return Answer(said.rc, said.out, said.err)


def join(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """The program of a join, `sh -c SCRIPT kubeadm-join FILE [BOOTSTRAP]`: a real shell runs it, with this kubeadm.

    Which files are there after it, the shell's own run over files of a private folder tells.
    """
    here, path, others = of(host), argv[4], argv[5:]
    before = [other for other in others if other in here.files]
    here.files[path] = File(here.stdin, 0o600)
    said = run_kubeadm(here.worker, ("kubeadm", "join", "--config", path))
    here.typed.append(("kubeadm", "join", "--config", path))
    with tempfile.TemporaryDirectory() as name:
        shell = Shell(Path(name), (path, *others))
        shell.prepare(said, here.stdin, before, [other for other in others if other in here.files])
        answer = shell.run(argv[:4], here.stdin)
        for one in shell.gone():
            here.files.pop(one, None)
    return answer


STAND_IN = """#!/bin/sh
[ "$1 $2" = "join --config" ] || exit 90
[ "$(stat -c %a "$3")" = 600 ] || exit 91
cmp -s "$3" "$HERE/stdin" || exit 92
cp -a "$HERE/left/." "$HERE/files/"
cat "$HERE/out"
cat "$HERE/err" >&2
exit "$(cat "$HERE/rc")"
"""


class Shell:
    """A folder in which a real shell runs the program of a join; `paths` are its arguments, files of the host."""

    def __init__(self, folder: Path, paths: tuple[str, ...]) -> None:
        self.folder = folder
        self.places = {path: folder / "files" / path.rpartition("/")[2] for path in paths}

    def prepare(self, said: Said, stdin: str, before: list[str], after: list[str]) -> None:
        """A kubeadm that says that and leaves the files `after`, where those of `before` are."""
        for name in ("bin", "files", "left"):
            (self.folder / name).mkdir()
        for name, text in (("stdin", stdin), ("out", said.out), ("err", said.err), ("rc", str(said.rc))):
            (self.folder / name).write_text(text, encoding="utf-8")
        for path in before:
            self.places[path].touch()
        for path in after:
            (self.folder / "left" / self.places[path].name).touch()
        (self.folder / "bin/kubeadm").write_text(STAND_IN, encoding="utf-8")
        (self.folder / "bin/kubeadm").chmod(0o700)

    def run(self, words: tuple[str, ...], stdin: str) -> Answer:
        """Run it; its first file is 0600, has what was given, and is gone after it."""
        done = subprocess.run(
            [*words, *map(str, self.places.values())],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HERE": str(self.folder), "LC_ALL": "C"},
        )
        assert done.returncode not in (90, 91, 92), (done.returncode, done.stderr)
        assert not next(iter(self.places.values())).exists(), "the script left the file with the token"
        return Answer(done.returncode, done.stdout, done.stderr)

    def gone(self) -> list[str]:
        """Those of the files that are not there."""
        return [path for path, place in self.places.items() if not place.exists()]


def journalctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """journalctl --unit=kubelet.service --lines=N."""
    words = {word.partition("=")[0]: word.partition("=")[2] for word in argv[1:]}
    if words.get("--unit") != UNIT:
        return Answer(0, "-- No entries --\n")
    count = int(words.get("--lines", "1000"))
    return Answer(0, "".join(f"{line}\n" for line in of(host).journal[-count:]))


def modprobe(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """Modules, and the keys that br_netfilter brings."""
    for name in [word for word in argv[1:] if not word.startswith("-")]:
        host.put(f"/sys/module/{name}/refcnt", "0\n")
        host.put(f"/sys/module/{name}/initstate", "live\n")
        if name == "br_netfilter":
            for key in ("iptables", "ip6tables", "arptables"):
                if f"{BRIDGE}{key}" not in host.files:
                    host.put(f"{BRIDGE}{key}", "0\n")
    return Answer(0, "")


def swapoff(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    host.put("/proc/swaps", HEAD)
    return Answer(0, "")


def swapon(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """swapon [-p N] [--] PATH."""
    host.put("/proc/swaps", f"{host.text('/proc/swaps')}{argv[-1]}\t\t\t\tfile\t\t2097148\t\t0\t\t-2\n")
    return Answer(0, "")


def grep(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """grep -c TEXT PATH: how many lines have it."""
    count = sum(argv[-2] in line for line in (host.text(argv[-1]) or "").split("\n"))
    return Answer(0 if count else 1, f"{count}\n")


def systemctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """The kubelet's service is the kubelet; containerd's is that of ContainerHost; units can be masked."""
    if argv[1] == "show" and "--" in argv:
        return container_host.shown(host, argv, systemctl)
    words = [word for word in argv[1:] if not word.startswith("-")]
    verb, unit = words[0], (words[1] if "." in words[-1] else f"{words[-1]}.service") if len(words) > 1 else ""
    mask = f"/etc/systemd/system/{unit}"
    if verb in ("mask", "unmask"):
        if verb == "mask":
            host.links[mask] = "/dev/null"
        else:
            host.links.pop(mask, None)
        return Answer(0, "")
    if host.links.get(mask) == "/dev/null" and verb in ("is-enabled", "start", "restart", "enable"):
        said = "" if verb == "is-enabled" else f"Failed to {verb} {unit}: Unit {unit} is masked.\n"
        return Answer(1, "" if said else "masked\n", said)
    if unit == UNIT and verb in ("start", "restart", "stop"):
        return _control(of(host), verb)
    if unit == "containerd.service" and verb in ("is-active", "start", "restart"):
        return _containerd(of(host), verb)
    if unit == "swap.target" or unit.endswith(".swap"):
        return Answer(0, "static\n") if verb == "is-enabled" else Answer(0, "")
    return gpu_systemctl(host, argv)


def _control(host: KubeHost, verb: str) -> Answer:
    if host.services.text(UNIT) is None:
        return Answer(5, "", f"Failed to {verb} {UNIT}: Unit {UNIT} not found.\n")
    if verb == "stop":
        host.stop_kubelet()
    else:
        host.start_kubelet()
    return Answer(0, "")


def _containerd(host: KubeHost, verb: str) -> Answer:
    if verb == "is-active":
        runs = "containerd" in host.running
        return Answer(0 if runs else 3, "active\n" if runs else "inactive\n")
    host.running.add("containerd")
    return container_host.systemctl(host, ("systemctl", "restart", "containerd"))
