# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a worker node has from the Kubernetes package repository, signed and served as that one is.

The packages have their true names, versions, dependencies and unit files. kubectl is Debian's own build of the real
program. kubeadm and kubelet are scripts over the stand-in cluster, whose code a test brings along: the image does not
change with it. crictl and the CNI plugins are empty but for their places.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import archive, recipe
from .archive import File, Package
from .errors import LabError

MINOR, PATCH = "1.32", "1.32.3"
VERSION = f"{PATCH}-1.1"
HOSTS = ("pkgs.k8s.io", "packages.lab")  # the second is where the first sends its visitors
PLACE = f"{recipe.STORE}/kubernetes"
SITE = f"core:/stable:/v{MINOR}/deb"
AUTHORITY, SERVING = f"{PLACE}/authority.crt", f"{PLACE}/serving.pem"
TRUSTED = "/usr/local/share/ca-certificates/lab.crt"
CODE = f"{recipe.STORE}/tests"  # where a test puts the package `cluster`

SCRIPT = f"""\
#!/usr/bin/python3
import sys

sys.path.insert(0, "{Path(CODE).parent}")
from tests.cluster.__main__ import main

sys.exit(main(["{PATCH}", "{{0}}", *sys.argv[1:]]))
"""
UNIT = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""
DROP_IN = """\
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""  # noqa: E501


def stock(root: Path, kubectl: Path, work: Path) -> None:
    """Puts the repository and the certificates of its server into the image's tree.

    kubectl: the real program. work: a directory that does not exist yet.
    """
    work.mkdir(parents=True)
    folder = root / PLACE.lstrip("/") / SITE
    folder.parent.mkdir(parents=True)
    archive.publish(packages(kubectl), folder, "obs://build.opensuse.org/isv:kubernetes:core:stable", work / "trees")
    _sign(folder)
    _certify(root, work)
    shutil.rmtree(work)


def packages(kubectl: Path) -> list[Package]:
    """The repository's packages."""
    return [
        Package("kubectl", VERSION, (File("/usr/bin/kubectl", kubectl, mode=0o755),)),
        Package(
            "kubeadm",
            VERSION,
            (_script("kubeadm"),),
            {"Depends": "cri-tools (>= 1.30.0), kubelet (>= 1.19.0), kubectl"},
        ),
        Package(
            "kubelet",
            VERSION,
            (
                _script("kubelet"),
                File("/usr/lib/systemd/system/kubelet.service", text=UNIT),
                File("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", text=DROP_IN),
            ),
            {"Depends": "kubernetes-cni (>= 1.2.0)"},
            {"postinst": "#!/bin/sh\nset -e\nmkdir -p /etc/kubernetes/manifests\nsystemctl daemon-reload\n"},
        ),
        Package("kubernetes-cni", "1.6.0-1.1", (File("/opt/cni/bin/loopback", text="#!/bin/sh\n", mode=0o755),)),
        Package("cri-tools", f"{MINOR}.0-1.1", (File("/usr/bin/crictl", text="#!/bin/sh\nexit 1\n", mode=0o755),)),
    ]


def _script(name: str) -> File:
    return File(f"/usr/bin/{name}", text=SCRIPT.format(name), mode=0o755)


def _sign(folder: Path) -> None:
    """Signs the repository's Release with a key of its own, which goes with this call, and leaves its public part."""
    with tempfile.TemporaryDirectory() as home:
        gpg = ("gpg", "--batch", "--quiet", "--homedir", home, "--pinentry-mode", "loopback", "--passphrase", "")
        name = "The lab's Kubernetes repository <root@lab>"
        _run(*gpg, "--quick-generate-key", name, "rsa3072", "sign", "never")
        for words, target in ((("--detach-sign",), "Release.gpg"), (("--clearsign",), "InRelease")):
            _run(
                *gpg,
                "--digest-algo",
                "SHA512",
                "--armor",
                "--output",
                str(folder / target),
                *words,
                f"{folder}/Release",
            )
        _run(*gpg, "--armor", "--output", str(folder / "Release.key"), "--export", name)
        _run("gpgconf", "--homedir", home, "--kill", "all")


def _certify(root: Path, work: Path) -> None:
    """An authority that the image trusts as it trusts those of the world, and a server's certificate of it."""
    place = root / PLACE.lstrip("/")
    names = ",".join(f"DNS:{name}" for name in HOSTS)
    extensions = work / "extensions"
    extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
    key, request, certificate = work / "key.pem", work / "request.pem", work / "serving.crt"
    days = ("-days", "7300")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    authority, secret = place / Path(AUTHORITY).name, work / "authority.pem"
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    first = ("openssl", "req", "-x509", *curve, *days, *usage, "-subj", "/CN=lab")
    _run(*first, "-keyout", str(secret), "-out", str(authority))
    _run("openssl", "req", *curve, "-subj", f"/CN={HOSTS[0]}", "-keyout", str(key), "-out", str(request))
    signed = ("-CA", str(authority), "-CAkey", str(secret), "-CAcreateserial", "-extfile", str(extensions))
    _run("openssl", "x509", "-req", "-in", str(request), *signed, *days, "-out", str(certificate))
    (place / Path(SERVING).name).write_text(key.read_text() + certificate.read_text())
    trusted = root / TRUSTED.lstrip("/")
    trusted.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(authority, trusted)
    _run("chroot", str(root), "update-ca-certificates")


def _run(*argv: str) -> None:
    environment = dict(os.environ, LC_ALL="C")
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise LabError(
            f"`{' '.join(argv[:3])} ...` exited {done.returncode} while the lab's Kubernetes repository was made: "
            f"{(done.stderr or done.stdout).strip()}"
        )
    sys.stderr.write(done.stderr)
