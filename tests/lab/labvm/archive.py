# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian packages and the repository that apt finds them in, from values."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .errors import LabError


class File(NamedTuple):
    """A file of a package: its path, and where it is copied from, what it holds, or where it leads as a link."""

    path: str
    source: Path | None = None
    text: str = ""
    link: str = ""
    mode: int = 0o644


class Package(NamedTuple):
    """A binary package. `fields` are further ones of its control file, `scripts` its maintainer scripts by name."""

    name: str
    version: str
    files: tuple[File, ...] = ()
    fields: Mapping[str, str] = {}
    scripts: Mapping[str, str] = {}

    @property
    def file_name(self) -> str:
        """What its archive is called."""
        return f"{self.name}_{self.version.replace(':', '%3a')}_amd64.deb"

    def control(self) -> str:
        """Its control file."""
        own = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": "amd64",
            "Maintainer": "The lab <root@lab>",
            "Description": "of the lab",
        }
        return "".join(f"{name}: {value}\n" for name, value in {**own, **self.fields}.items())


def publish(packages: Iterable[Package], folder: Path, origin: str, work: Path) -> None:
    """Write the packages and the index of a flat repository, which says that it is of that origin.

    work: an empty directory for the trees of the packages.
    """
    folder.mkdir(parents=True)
    entries = [_entry(package, _deb(package, folder, work)) for package in packages]
    index = "\n".join(entries)
    (folder / "Packages").write_text(index)
    digest = hashlib.sha256(index.encode()).hexdigest()
    (folder / "Release").write_text(
        f"Origin: {origin}\nLabel: {origin}\nSuite: lab\nCodename: lab\nDate: Sat, 01 Nov 2025 00:00:00 UTC\n"
        f"Architectures: amd64\nSHA256:\n {digest} {len(index)} Packages\n"
    )


def _deb(package: Package, folder: Path, work: Path) -> Path:
    tree = work / package.file_name
    for file in package.files:
        path = tree / file.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.link:
            path.symlink_to(file.link)
            continue
        if file.source:
            shutil.copyfile(file.source, path)
        else:
            path.write_text(file.text)
        path.chmod(file.mode)
    control = tree / "DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(package.control())
    settings = [file.path for file in package.files if file.path.startswith("/etc/") and not file.link]
    if settings:
        (control / "conffiles").write_text("".join(f"{path}\n" for path in settings))
    for name, text in package.scripts.items():
        (control / name).write_text(text)
        (control / name).chmod(0o755)
    target = folder / package.file_name
    argv = ("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(target))
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"dpkg-deb exited {done.returncode} for {package.file_name}: {done.stderr.strip()}")
    shutil.rmtree(tree)
    return target


def _entry(package: Package, deb: Path) -> str:
    content = deb.read_bytes()
    return (
        f"{package.control()}Filename: ./{deb.name}\nSize: {len(content)}\n"
        f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
    )
