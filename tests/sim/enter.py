# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program inside a simulated host: `enter.py TREE [--python PATH] [--uid N] -- PROGRAM [ARGUMENT ...]`.

`--uid N` goes by another number, with root's rights to all that is inside. `--account NAME` is that account of the
simulated host's /etc/passwd and its groups, to this machine's kernel too: what is root's it cannot touch. Only root
can become one.

A mount namespace (for an ordinary user, a user namespace too) is made whose root is the tree. This machine's /usr is
bound into it read-only, merged with what the tree itself has below /usr; the programs that the simulator plays are
covered by its stand-ins, so that none of them can run by accident. Nothing of /etc, /proc, /sys, /run, /var or /home
of this machine can be seen from inside. Exit status 125 means that the namespace could not be made.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from typing import NamedTuple

NEWNS, NEWUTS, NEWUSER = 0x00020000, 0x04000000, 0x10000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
NOATIME, NODIRATIME, RELATIME = 1024, 2048, 1 << 21
ST_FLAGS = {2: NOSUID, 4: NODEV, 8: NOEXEC, 1024: NOATIME, 2048: NODIRATIME, 4096: RELATIME}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
MERGED = ("usr", "usr/lib", "usr/local")
TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
PROGRAM_DIRECTORIES = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin")
MULTICALL = ("busybox", "coreutils", "toybox", "sbase-box")
HERE = os.path.dirname(os.path.realpath(__file__))
COMPILED = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".build", "compiled")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "SHELL": "/bin/sh",
    "LANG": "C.UTF-8",
    "PYTHONPATH": "/.sim/lib/tests/sim/hook",
}
# Which stand-in it is says the name that it was called by.
STAND_IN = """#!/.sim/python -IS
import sys

sys.path.insert(0, "/.sim/lib")
from tests.sim.standins import main

sys.exit(main(sys.argv))
"""
LIBC = ctypes.CDLL(None, use_errno=True)


class CannotEnter(Exception):
    """The tree cannot be entered."""


class NoNamespace(CannotEnter):
    """The kernel, or what guards it, refuses to make the namespace."""


def main(argv: list[str]) -> int:
    """Enter and become the program; returns only when that failed."""
    if argv == ["--probe"]:
        return _probe()
    options, program = _options(argv)
    environment = dict(ENVIRONMENT)
    try:
        account = accounts(options["tree"])[options["account"]] if "account" in options else None
        enter(options["tree"], options.get("python", sys.executable), int(options.get("uid", "0")))
        if account is not None:
            become(account)
            name = options["account"]
            environment.update(HOME=account.home, USER=name, LOGNAME=name)
    except KeyError:
        sys.stderr.write(f"sim: {options['tree']} has no account {options['account']} in its /etc/passwd\n")
        return 125
    except (CannotEnter, OSError) as fault:
        what = "no namespace" if isinstance(fault, NoNamespace) else f"cannot enter {options['tree']}"
        sys.stderr.write(f"sim: {what}: {fault}\n")
        return 125
    try:
        os.execvpe(program[0], program, environment)
    except OSError as fault:
        sys.stderr.write(f"sim: {program[0]}: {fault.strerror}\n")
        return 127 if isinstance(fault, FileNotFoundError) else 126


def enter(tree: str, python: str, uid: int = 0) -> None:
    """Move this process into the tree, as the user `uid` of the simulated host."""
    tree = os.path.realpath(tree)
    root = os.path.join(tree, ".sim", "root")
    if not os.path.isdir(root):
        raise CannotEnter(f"{tree} is no simulated host: {root} is missing")
    prefixes = interpreter_prefixes(python)
    python = os.path.abspath(python)
    _unshare(uid)
    _mount("none", "/", flags=REC | PRIVATE)
    _mount(tree, root, flags=BIND)
    _usr(tree, root)
    for prefix in prefixes:
        _bind_path(prefix, root)
    _devices(root)
    _simulator(root, python)
    _programs(tree, root)
    for name in ("etc/alternatives", "etc/ld.so.cache"):
        if os.path.exists("/" + name) and os.path.exists(f"{root}/{name}"):
            _bind("/" + name, f"{root}/{name}")
    _hostname(tree)
    soft = min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))  # no /proc/self/fd inside: Python closes one by one
    os.chroot(root)
    os.chdir("/root" if uid == 0 else "/")
    os.umask(0o022)


class Account(NamedTuple):
    """An account: its number, its groups with the primary one first, its home."""

    uid: int
    groups: list[int]
    home: str


def accounts(tree: str) -> dict[str, Account]:
    """The accounts of a simulated host by name."""
    found: dict[str, Account] = {}
    groups = [line.split(":") for line in _lines(f"{tree}/etc/group")]
    for line in _lines(f"{tree}/etc/passwd"):
        name, _password, uid, group, _words, home, _shell = line.split(":")
        more = [int(number) for _name, _secret, number, members in groups if name in members.split(",")]
        found[name] = Account(int(uid), [int(group), *more], home)
    return found


def become(account: Account) -> None:
    """Be this account from now on; `enter` comes before."""
    try:
        os.setgroups(account.groups)
        os.setgid(account.groups[0])
        os.setuid(account.uid)
    except OSError as fault:
        raise CannotEnter(f"only root can become another account: {fault.strerror}") from None
    os.chdir("/")


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as source:
        return source.read().splitlines()


def _probe() -> int:
    """Whether namespaces can be made and mounts made in them: exit status 0 or 125."""
    try:
        _unshare(0)
        _mount("none", "/", flags=REC | PRIVATE)
        _mount("sim", "/tmp", "tmpfs")
    except CannotEnter as fault:
        sys.stderr.write(f"sim: no namespace: {fault}\n")
        return 125
    return 0


def interpreter_prefixes(python: str) -> list[str]:
    """The directories outside /usr that an interpreter needs: each prefix on its chain of links, and its base."""
    found: list[str] = []
    here = os.path.abspath(python)
    for _hop in range(20):
        prefix = os.path.dirname(os.path.dirname(here))
        if not here.startswith("/usr/") and prefix not in ("/", "/usr", *found):
            found.append(prefix)
        if not os.path.islink(here):
            break
        here = os.path.normpath(os.path.join(os.path.dirname(here), os.readlink(here)))
    with open(here, "rb") as program:
        if program.read(2) == b"#!":
            raise CannotEnter(f"{python} is a script that finds an interpreter, not one: name the interpreter itself")
    real = os.path.dirname(os.path.dirname(os.path.realpath(here)))
    if not (real + "/").startswith("/usr/") and real not in ("/", *found):
        found.append(real)
    return found


def _options(argv: list[str]) -> tuple[dict[str, str], list[str]]:
    try:
        end = argv.index("--")
        words, program = argv[:end], argv[end + 1 :]
        options = {"tree": words[0]}
        for name, value in zip(words[1::2], words[2::2]):
            options[name[2:]] = value
    except (ValueError, IndexError):
        raise SystemExit(__doc__) from None
    if not program or not set(options) <= {"tree", "python", "uid", "account"}:
        raise SystemExit(__doc__)
    return options, program


def _unshare(uid: int) -> None:
    mine, group = os.getuid(), os.getgid()
    if mine == 0 and uid == 0 and LIBC.unshare(NEWNS | NEWUTS) == 0:
        return
    if LIBC.unshare(NEWNS | NEWUTS | NEWUSER):  # an ordinary user, or a root that may not mount
        raise NoNamespace(f"unshare: {os.strerror(ctypes.get_errno())}")
    try:
        _put("/proc/self/setgroups", "deny")
        _put("/proc/self/uid_map", f"{uid} {mine} 1")
        _put("/proc/self/gid_map", f"{uid} {group} 1")
    except OSError as fault:
        raise NoNamespace(f"{fault.filename}: {fault.strerror}") from None


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as out:
        out.write(text)


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    if LIBC.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    ):
        raise (NoNamespace if flags & PRIVATE else CannotEnter)(
            f"mount {source} on {target}: {os.strerror(ctypes.get_errno())}"
        )


def _bind(source: str, target: str, writable: bool = False) -> None:
    _mount(source, target, flags=BIND | REC)
    if not writable:
        kept = sum(flag for bit, flag in ST_FLAGS.items() if os.statvfs(target).f_flag & bit)
        _mount("none", target, flags=BIND | REMOUNT | RDONLY | kept)


def _usr(tree: str, root: str) -> None:
    """This machine's /usr with the tree's own laid over it: what the tree has is the tree's, and writable."""
    _merge("usr", tree, root)
    for name in TOP:
        here = "/" + name
        if os.path.islink(f"{root}/{name}"):
            continue
        if os.path.islink(here):
            with contextlib.suppress(FileExistsError):  # another program entered at the same moment
                os.symlink(os.readlink(here), f"{root}/{name}")
        elif os.path.isdir(here):
            os.makedirs(f"{root}/{name}", exist_ok=True)
            _bind(here, f"{root}/{name}")


def _merge(place: str, tree: str, root: str) -> None:
    target = f"{root}/{place}"
    os.makedirs(target, exist_ok=True)
    own = set(_names(f"{tree}/{place}"))
    _mount("sim", target, "tmpfs", data="mode=755")
    for name in sorted({*own, *_names("/" + place)}):
        below = f"{place}/{name}"
        if below in MERGED:
            os.mkdir(f"{root}/{below}")
            _merge(below, tree, root)
            continue
        source = f"{tree}/{below}" if name in own else f"/{below}"
        if os.path.islink(source):
            os.symlink(os.readlink(source), f"{root}/{below}")
        else:
            _point(source, f"{root}/{below}")
            _bind(source, f"{root}/{below}", writable=name in own)


def _names(directory: str) -> list[str]:
    return os.listdir(directory) if os.path.isdir(directory) else []


def _point(source: str, target: str) -> None:
    """A place to bind on."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="ascii"):
            pass


def _bind_path(path: str, root: str) -> None:
    """Bind a directory of this machine at its own path; the empty directories down to it stay in the tree."""
    os.makedirs(root + path, exist_ok=True)
    _bind(path, root + path)


def _devices(root: str) -> None:
    for name in DEVICES:
        if os.path.exists(f"/dev/{name}"):
            _point(f"/dev/{name}", f"{root}/dev/{name}")
            _mount(f"/dev/{name}", f"{root}/dev/{name}", flags=BIND)


def _simulator(root: str, python: str) -> None:
    """/.sim of the simulated host: its library, its interpreter, what covers a program that is not there."""
    target = f"{root}/.sim"
    _mount("sim", target, "tmpfs", data="mode=755")
    os.makedirs(f"{target}/lib/tests/sim")
    _bind(HERE, f"{target}/lib/tests/sim")
    for name in ("gpu", "cluster"):
        os.makedirs(f"{target}/lib/tests/{name}")
        _bind(os.path.join(os.path.dirname(HERE), name), f"{target}/lib/tests/{name}")
    os.mkdir(f"{target}/compiled")
    with contextlib.suppress(OSError):  # where nothing can be kept, nothing is
        os.makedirs(COMPILED, exist_ok=True)
        _bind(COMPILED, f"{target}/compiled", writable=True)
    os.symlink(python, f"{target}/python")
    _isolated(target, python)
    _put(f"{target}/standin", STAND_IN)
    os.chmod(f"{target}/standin", 0o755)  # noqa: S103  (a program)
    _put(f"{target}/absent", "")
    os.chmod(f"{target}/absent", 0o444)


def _isolated(target: str, python: str) -> None:
    """/.sim/venv/bin/python: the interpreter for programs that heed no variable (python -I), with the hook too.

    It has the packages of `python`, which may be a virtual environment itself.
    """
    real = os.path.realpath(python)
    packages = f"lib/{os.path.basename(real)}/site-packages"
    venv = f"{target}/venv"
    os.makedirs(f"{venv}/bin")
    os.makedirs(f"{venv}/{packages}")
    os.symlink(real, f"{venv}/bin/python")
    _put(f"{venv}/pyvenv.cfg", f"home = {os.path.dirname(real)}\ninclude-system-site-packages = true\n")
    others = os.path.join(os.path.dirname(os.path.dirname(python)), packages)
    hook = "import sys; sys.path.insert(0, '/.sim/lib/tests/sim/hook'); import sitecustomize\n"
    _put(f"{venv}/{packages}/sim.pth", f"{others}\n{hook}")


def _programs(tree: str, root: str) -> None:
    """Cover each program of this machine that the simulator plays: by its stand-in, or by nothing at all."""
    with open(f"{HERE}/programs.txt", encoding="ascii") as names:
        played = names.read().split()
    present = set(os.listdir(f"{tree}/usr/local/sbin"))
    covered: set[str] = set()
    for name in played:
        cover = f"{root}/.sim/standin" if name in present else f"{root}/.sim/absent"
        for directory in PROGRAM_DIRECTORIES[1:]:
            real = os.path.realpath(f"/{directory}/{name}")
            if real in covered or not real.startswith("/usr/") or not os.path.isfile(real):
                continue
            if os.path.basename(real) not in MULTICALL and os.path.isfile(root + real):
                covered.add(real)
                _mount(cover, root + real, flags=BIND)


def _hostname(tree: str) -> None:
    try:
        with open(f"{tree}/etc/hostname", "rb") as source:
            name = source.read().strip()
    except FileNotFoundError:
        return
    LIBC.sethostname(name, len(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
