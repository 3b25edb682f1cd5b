# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab on the command line: `python3 tests/lab/lab.py --help`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

from labvm import guest, image, machine, recipe
from labvm.errors import LabError, LabUnavailable

COMMANDS = {
    "prerequisites": "install what the lab needs from the distribution (root, apt)",
    "check": "say in one line whether this machine can run the lab; exit 0 when it can",
    "build": "make the image and its booted state, unless they are there",
    "up": "bring the machine up, or say that it runs",
    "status": "say what is there",
    "ssh": "run a command in the machine (or a shell): ssh [--root] [COMMAND ...]",
    "snapshot": "keep disk and memory under a name: snapshot NAME",
    "revert": "go back to a snapshot: revert [NAME]; `clean` is what `up` made",
    "reboot": "reboot the machine and print its new boot id",
    "inventory": "print the path of the inventory for ansible-playbook -i",
    "console": "print the end of the serial console",
    "down": "end the machine and remove all of it",
    "prune": "remove images that this recipe does not make any more and no running machine uses",
}


def prerequisites() -> None:
    packages = image.missing({**image.BUILD_PROGRAMS, **image.RUN_PROGRAMS})
    if not packages:
        print("the lab has all it needs")
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise LabUnavailable(
            f"the lab needs {', '.join(packages)}: run this as root where there is apt-get, or install them by hand"
        )
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for argv in (("apt-get", "update", "-q"), ("apt-get", "install", "-q", "-y", "--no-install-recommends", *packages)):
        done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise LabUnavailable(f"`{' '.join(argv)}` exited {done.returncode}: install {', '.join(packages)} by hand")


def check() -> None:
    reason = image.unavailable(variant())
    if reason:
        raise LabUnavailable(reason)
    print("this machine can run the lab")


def build() -> None:
    with machine.locked("image"):
        blueprint = machine.prepare(variant())
    print(f"{blueprint.image} ({' '.join(blueprint.accelerator)})")


def up(name: str) -> None:
    found = machine.running(name)
    if found is None:
        found = machine.up(name, variant())
    print(
        f"the lab machine {name} runs (pid {found.process.pid}, {found.accelerator}); "
        f"inventory: {found.ansible_inventory}"
    )


def status(name: str) -> None:
    folder = image.directory(variant())
    print(f"image: {folder} ({'there' if image.built(variant()) else 'not built'})")
    found = machine.running(name)
    if found is None:
        print(f"machine {name}: not running")
        return
    print(
        f"machine {name}: pid {found.process.pid}, {found.accelerator}, ssh on 127.0.0.1:{found.port}, "
        f"{'answers' if guest.answers(found.port) else 'does not answer'}, snapshots: {', '.join(found.snapshots())}"
    )


def ssh(found: machine.Machine, words: list[str]) -> int:
    alias = guest.ALIASES[recipe.USER]
    if words[:1] == ["--root"]:
        alias, words = guest.ALIASES["root"], words[1:]
    return subprocess.run(("ssh", "-F", str(found.ssh_config), alias, *words), check=False).returncode


def prune() -> None:
    with machine.locked("image"):
        kept = {image.directory(each) for each in recipe.VARIANTS.values()} | machine.images_in_use()
        for folder in (recipe.cache() / "images").glob("*"):
            if folder not in kept:
                shutil.rmtree(folder)
                print(f"removed {folder}")


def variant() -> recipe.Variant:
    return recipe.VARIANTS[os.environ.get("BCD_LAB_VARIANT", recipe.BASE)]


def on_running(name: str, command: str, words: list[str]) -> int:
    """The commands that need a running machine."""
    found = machine.running(name)
    if found is None:
        raise LabError(f"the lab machine {name} does not run: start it with `python3 tests/lab/lab.py up`")
    begin = time.monotonic()
    if command == "ssh":
        return ssh(found, words)
    if command == "snapshot":
        found.snapshot(words[0] if words else machine.CLEAN)
    elif command == "revert":
        found.revert(words[0] if words else machine.CLEAN)
    elif command == "reboot":
        print(found.reboot())
    elif command == "inventory":
        print(found.ansible_inventory)
        return 0
    elif command == "console":
        print(found.console_tail())
        return 0
    print(f"{command}: {time.monotonic() - begin:.1f} s", file=sys.stderr)
    return 0


def down(name: str) -> None:
    found = machine.running(name)
    if found is not None:
        found.down()
    print(f"the lab machine {name} is down")


def stop(number: int, _frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end us as an exception does, so that what was started is taken down again."""
    sys.exit(128 + number)


def main(argv: list[str]) -> int:
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        description="A real Debian in QEMU, for tests.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items()),
    )
    parser.add_argument("--name", default="default", help="which machine (each has a room of its own)")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    alone = {"prerequisites": prerequisites, "check": check, "build": build, "prune": prune}
    named = {"up": up, "status": status, "down": down}
    try:
        if options.command in alone:
            alone[options.command]()
        elif options.command in named:
            named[options.command](options.name)
        else:
            return on_running(options.name, options.command, options.words)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
