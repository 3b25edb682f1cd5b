# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs, packages and container runtimes of a simulated host, against what the real tools are documented to do."""

from __future__ import annotations

import json
import os
import re

from tests.sim import containers, packages
from tests.sim import machine as files

from .conftest import Maker

FORMAT = "${db:Status-Abbrev}|${Package}|${Version}\\n"
SERVER = "nvidia-headless-580-server-open=580.95.05-0ubuntu0.24.04.1"


def test_a_bare_host_has_gpus_on_the_bus_and_no_driver(make: Maker) -> None:
    host = make("h100-bare")
    assert host.read("/sys/bus/pci/devices/0000:17:00.0/vendor") == "0x10de\n"
    assert host.read("/proc/driver/nvidia/version") is None
    assert host.run("modprobe", "nvidia").returncode == 1
    assert host.run("modinfo", "nvidia").returncode == 1
    assert host.run("nvidia-smi", "-L").returncode == 127


def test_packages_bring_the_driver_and_the_module_is_loaded_by_hand(make: Maker) -> None:
    host = make("h100-bare")
    done = host.run("apt-get", "-y", "install", SERVER, "nvidia-utils-580-server=580.95.05-0ubuntu0.24.04.1")
    assert done.returncode == 0, done.stderr
    assert host.run("modinfo", "nvidia").stdout.splitlines()[1:4] == [
        "version:        580.95.05",
        "supported:      external",
        "license:        Dual MIT/GPL",
    ]
    assert host.run("nvidia-smi", "-L").returncode == 9  # the module is not loaded
    for name in ("nvidia", "nvidia_uvm"):
        assert host.run("modprobe", name).returncode == 0
    assert "Open Kernel Module for x86_64  580.95.05  " in (host.read("/proc/driver/nvidia/version") or "")
    assert len(host.run("nvidia-smi", "-L").stdout.splitlines()) == 2
    assert files.there(host.tree, "/dev/nvidia-uvm")
    assert host.run("rmmod", "nvidia").stderr == "rmmod: ERROR: Module nvidia is in use by: nvidia_uvm\n"

    # A newer library over the loaded module.
    upgrade = [
        one.replace("95.05", "105.08") for one in (SERVER, "libnvidia-compute-580-server=580.95.05-0ubuntu0.24.04.1")
    ]
    assert host.run("apt-get", "-y", "install", *upgrade).returncode == 0
    assert host.run("nvidia-smi", "-L").returncode == 18
    host.reboot()
    assert host.run("nvidia-smi", "-L").returncode == 0


def test_device_nodes_are_linked_by_nvidia_ctk_and_after_a_boot_by_a_rule_of_udev(make: Maker) -> None:
    host = make("h100")
    link = f"{host.tree}/dev/char/195:0"
    command = ("nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all")
    assert host.run(*command).returncode == 0
    assert os.readlink(link) == "/dev/nvidia0"
    host.reboot()
    assert not os.path.lexists(link)
    rule = f'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia_uvm", RUN+="/usr/bin/{" ".join(command)}"\n'
    files.put(host.tree, "/etc/udev/rules.d/72-x.rules", rule)
    host.reboot()
    assert os.readlink(link) == "/dev/nvidia0"


def test_apt_tells_holds_and_what_would_go(make: Maker) -> None:
    host = make("a100")
    name = "nvidia-utils-580-server"
    older = host.run("apt-get", "-s", "-y", "install", f"{name}=580.95.05-0ubuntu0.24.04.1")
    said = "E: Packages were downgraded and -y was used without --allow-downgrades.\n"
    assert (older.returncode, older.stderr) == (100, said)
    assert host.run("apt-mark", "hold", name).returncode == 0
    shown = host.run("dpkg-query", "-W", "-f", FORMAT, "nvidia-utils-*", "nvidia-none")
    assert (shown.returncode, shown.stdout) == (1, f"hi |{name}|580.105.08-0ubuntu0.24.04.1\n")
    assert shown.stderr == "dpkg-query: no packages found matching nvidia-none\n"
    paper = host.run("apt-get", "-s", "-y", "install", "nvidia-utils-550-server", "--allow-change-held-packages")
    assert f"Remv {name} [580.105.08-0ubuntu0.24.04.1]" in paper.stdout.splitlines()
    assert host.run("apt-get", "-y", "install", "nvidia-utils-550-server").returncode == 100
    missing = host.run("apt-get", "-y", "install", "nvidia-utils-999-server")
    assert (missing.returncode, missing.stderr) == (100, "E: Unable to locate package nvidia-utils-999-server\n")
    madison = host.run("apt-cache", "madison", "nvidia-fabricmanager-580").stdout.splitlines()
    assert [line.split(" | ")[1] for line in madison] == ["580.105.08-0ubuntu0.24.04.1", "580.95.05-0ubuntu0.24.04.1"]


def test_dnf_keeps_to_the_stream_that_is_enabled(make: Maker) -> None:
    host = make("h100-el9")
    assert host.run("dnf", "-y", "install", "kmod-nvidia-open-dkms").returncode == 1
    assert host.run("dnf", "-y", "module", "enable", "nvidia-driver:580-open").returncode == 0
    assert host.run("dnf", "-y", "module", "enable", "nvidia-driver:550-open").returncode == 1
    assert re.search(
        r"^nvidia-driver +580-open \[e\]", host.run("dnf", "module", "list", "nvidia-driver").stdout, re.MULTILINE
    )
    pinned = "kmod-nvidia-open-dkms-3:580.95.05-1.el9"
    assert host.run("dnf", "-y", "install", pinned).returncode == 0
    shown = host.run("rpm", "-qa", "--qf", "%{NAME}|%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n", "kmod-*")
    assert shown.stdout == "kmod-nvidia-open-dkms|3:580.95.05-1.el9\n"
    assert host.run("dnf", "-y", "versionlock", "add", pinned).returncode == 0
    assert host.read(packages.LIST) == f"{pinned}.*\n"


def test_a_reboot_takes_instances_and_a_service_brings_them_back(make: Maker) -> None:
    host = make("h100")
    for line in ("-i 0 -mig 1", "mig -i 0 -cgi 3g.40gb -C", "-i 1 -pl 500"):
        assert host.run("nvidia-smi", *line.split()).returncode == 0
    with host.gpus() as gpus:
        assert (gpus.instances(0), gpus.cards[1].power) == (["3g.40gb"], 500)
    host.write(
        "/etc/systemd/system/again.service",
        "[Service]\nType=oneshot\nExecStart=/usr/local/sbin/nvidia-smi -i 0 -mig 1\n"
        "ExecStart=-/usr/local/sbin/nvidia-smi mig -i 0 -cgi 7g.80gb -C\n[Install]\nWantedBy=multi-user.target\n",
    )
    assert host.run("systemctl", "enable", "again").returncode == 0
    host.reboot()
    with host.gpus() as gpus:
        assert (gpus.instances(0), gpus.cards[1].power) == (["7g.80gb"], 700)
        assert gpus.clients == ["nvidia-persistenced"]


def test_a_process_holds_its_gpu_and_the_module(make: Maker) -> None:
    host = make("rtx")
    with host.gpus() as gpus:
        gpus.occupy(1, pid=4242, name="train")
    assert "/dev/nvidia1" in host.run("sh", "-c", "readlink /proc/4242/fd/*").stdout.splitlines()
    assert host.read("/proc/4242/comm") == "train\n"
    assert host.run("modprobe", "-r", "nvidia_uvm").stderr == "modprobe: FATAL: Module nvidia_uvm is in use.\n"
    with host.gpus() as gpus:
        gpus.free(1)
    assert files.names(host.tree, "/proc/4242") == []
    assert host.run("modprobe", "-r", "nvidia_uvm").returncode == 0


def test_mps_answers_by_its_pipe_directory(make: Maker) -> None:
    host = make("rtx")
    ask = ("env", "CUDA_MPS_PIPE_DIRECTORY=/run/mps", "nvidia-cuda-mps-control")
    assert host.run(*ask, stdin="get_server_list\n").stdout == "Cannot find MPS control daemon process\n"
    assert host.run(*ask, "-d").returncode == 0
    assert host.run(*ask, "-d").stdout == "An instance of this daemon is already running\n"
    lines = "set_default_active_thread_percentage 25\nset_default_active_thread_percentage 0\nbogus\n"
    assert host.run(*ask, stdin=lines).stdout == '25.0\n25.0\nUnknown command "bogus"\n'
    assert host.run(*ask, stdin="quit\n").returncode == 0
    assert host.run(*ask, stdin="get_server_list\n").returncode == 1


def test_containerd_1_takes_a_whole_table_and_2_merges() -> None:
    name = containers.OLD_CRI
    first = containers.parse(containers.FIRST)
    drop_in = containers.parse(f'version = 2\n[plugins."{name}"]\nenable_cdi = true\n')
    old = containers._merged([("a", first), ("b", drop_in)], modern=False)["plugins"][name]
    assert (old["enable_cdi"], old["registry"]["config_path"]) == (True, "")
    modern = first["plugins"][name], drop_in["plugins"][name]
    tables = [(str(at), {"version": 3, "plugins": {containers.NEW_CRI: one}}) for at, one in enumerate(modern)]
    new = containers._merged(tables, modern=True)["plugins"][containers.NEW_CRI]
    assert (new["enable_cdi"], new["registry"]["config_path"]) == (True, "/etc/containerd/certs.d")


def test_dockerd_validates_its_file(make: Maker) -> None:
    host = make("rtx", runtimes=(("docker", "28.2.2"),))
    host.write("/root/daemon.json", json.dumps({"features": {"cdi": True}}))
    good = host.run("dockerd", "--validate", "--config-file=/root/daemon.json")
    assert (good.returncode, good.stderr) == (0, "configuration OK\n")
    host.write("/root/daemon.json", "{")
    assert host.run("dockerd", "--validate", "--config-file=/root/daemon.json").returncode == 1
