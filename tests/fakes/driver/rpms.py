#!/usr/bin/env python3
"""Write NVIDIA's repository for the RHEL family: rpms.py FOLDER. Runs on a host with rpmbuild, rpmsign, gpg and createrepo_c.

Names, versions, epoch, relations and module streams are the true ones; packages are empty but for what makes the stand-in kernel
build or forget a module. ``family/`` is the distribution, with dkms and the headers of the running kernel.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RELEASES = ("580.82.07", "580.95.05", "590.44.01")
SPEC = """\
Name: nvidia-driver
Version: {version}
Release: 1.el9
Epoch: 3
Summary: stand-in
License: none
BuildArch: noarch
Requires: nvidia-driver-cuda-libs = 3:%{{version}}
%description
stand-in
%package -n kmod-nvidia-open-dkms
Summary: stand-in
Requires: dkms
Conflicts: kmod-nvidia-latest-dkms
%description -n kmod-nvidia-open-dkms
stand-in
%post -n kmod-nvidia-open-dkms
dkms install nvidia/%{{version}} --flavour open
%preun -n kmod-nvidia-open-dkms
dkms remove nvidia/%{{version}}
%package -n nvidia-driver-cuda
Summary: stand-in
Requires: nvidia-driver-cuda-libs = 3:%{{version}}
%description -n nvidia-driver-cuda
stand-in
%package -n nvidia-driver-cuda-libs
Summary: stand-in
%description -n nvidia-driver-cuda-libs
stand-in
%post -n nvidia-driver-cuda-libs
fake-kernel render
%package -n nvidia-persistenced
Summary: stand-in
Requires: nvidia-driver-cuda-libs = 3:%{{version}}
%description -n nvidia-persistenced
stand-in
%install
mkdir -p %{{buildroot}}/usr/lib/systemd/system
cd %{{buildroot}}/usr/lib/systemd/system
printf '[Service]\\nExecStart=/usr/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' > nvidia-persistenced.service
%files
%files -n kmod-nvidia-open-dkms
%files -n nvidia-driver-cuda
%files -n nvidia-driver-cuda-libs
%files -n nvidia-persistenced
/usr/lib/systemd/system/nvidia-persistenced.service
"""
FAMILY = """\
Name: dkms
Version: 3.0.13
Release: 1.el9
Summary: stand-in
License: none
BuildArch: noarch
Provides: /bin/sh
%description
stand-in
%package -n kernel-devel-{kernel}
Summary: stand-in
%description -n kernel-devel-{kernel}
stand-in
%package -n python3-dnf-plugin-versionlock
Summary: stand-in
%description -n python3-dnf-plugin-versionlock
the plugin itself is Debian's
%install
mkdir -p %{{buildroot}}/usr/lib/modules/{kernel}/build
touch %{{buildroot}}/usr/lib/modules/{kernel}/build/Makefile
%files
%files -n python3-dnf-plugin-versionlock
%files -n kernel-devel-{kernel}
/usr/lib/modules/{kernel}/build/Makefile
"""
STREAM = """\
---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: "{stream}"
  version: {number}
  context: {context}
  arch: x86_64
  summary: stand-in
  description: stand-in
  license: {{module: [MIT]}}
  artifacts:
    rpms:
{rpms}
...
"""
NAMES = ("nvidia-driver", "kmod-nvidia-open-dkms", "nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-persistenced")


def run(*words: str | Path, **env: str) -> None:
    subprocess.run(list(map(str, words)), check=True, env={**os.environ, **env}, stdout=subprocess.DEVNULL)


def build(spec: str, folder: Path) -> None:
    file = folder.parent / "one.spec"
    file.write_text(spec)
    run(
        "rpmbuild",
        "-bb",
        "--quiet",
        "--define",
        f"_rpmdir {folder}",
        "--define",
        "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        file,
    )


def streams() -> str:
    """Return the module streams: one for each branch, whose packages are all of that branch."""
    known: dict[str, list[str]] = {}
    for version in RELEASES:
        lines = known.setdefault(f"{version.partition('.')[0]}-open", [])
        lines += [f"      - {name}-3:{version}-1.el9.noarch" for name in NAMES]
    return "".join(
        STREAM.format(stream=stream, number=stream[:3], context=f"c{stream[:3]}", rpms="\n".join(lines))
        for stream, lines in known.items()
    )


def main(folder: Path) -> None:
    home = folder / "gnupg"
    home.mkdir(parents=True, mode=0o700)
    gpg = {"GNUPGHOME": str(home)}
    run(
        "gpg",
        "--batch",
        "--quiet",
        "--passphrase",
        "",
        "--quick-gen-key",
        "driver@example.invalid",
        "rsa2048",
        "sign",
        "never",
        **gpg,
    )
    nvidia, family = folder / "nvidia", folder / "family"
    for place in (nvidia, family):
        place.mkdir()
    for version in RELEASES:
        build(SPEC.format(version=version), nvidia)
    build(FAMILY.format(kernel=os.uname().release), family)
    run(
        "rpmsign",
        "--define",
        "__gpg /usr/bin/gpg",
        "--define",
        "_gpg_name driver@example.invalid",
        "--addsign",
        *sorted([*nvidia.glob("*.rpm"), *family.glob("*.rpm")]),
        **gpg,
    )
    (folder / "modules.yaml").write_text(streams())
    for place in (nvidia, family):
        run("createrepo_c", "--quiet", place)
        with (place / "key.asc").open("w") as key:
            subprocess.run(["gpg", "--armor", "--export"], check=True, env={**os.environ, **gpg}, stdout=key)
    run("modifyrepo_c", "--mdtype=modules", folder / "modules.yaml", nvidia / "repodata")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
