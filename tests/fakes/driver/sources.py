#!/usr/bin/env python3
"""Write the package sources of the driver's story: sources.py FOLDER. Names, versions and relations are the true ones.

``nvidia/`` is NVIDIA's repository for Debian with three releases in two branches. ``debian/`` is the distribution, with dkms, the
headers of the running kernel and its own, older driver. Packages are empty but for what makes the stand-in kernel (kernel.py)
build or forget a module.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from debs import Deb, repository  # noqa: E402
from openpgp import Key  # noqa: E402

RELEASES = ("580.82.07-1", "580.95.05-1", "590.44.01-1")
UNIT = """\
[Unit]
Description=NVIDIA Persistence Daemon (stand-in)
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
RENDER = "#!/bin/sh\nfake-kernel render\n"


def module(name: str, version: str, flavour: str, rival: str) -> Deb:
    upstream = version.partition("-")[0]
    return Deb(
        name,
        version,
        {"Depends": "dkms", "Provides": "nvidia-kernel-dkms-any", "Conflicts": rival, "Replaces": rival},
        {
            "postinst": f"#!/bin/sh\nset -e\ndkms install nvidia/{upstream} --flavour {flavour}\n",
            "prerm": f"#!/bin/sh\ndkms remove nvidia/{upstream}\n",
        },
    )


def driver(version: str) -> list[Deb]:
    same = f"(= {version})"
    libraries = f"libcuda1 {same}, libnvidia-ml1 {same}"
    return [
        module("nvidia-kernel-open-dkms", version, "open", "nvidia-kernel-dkms"),
        module("nvidia-kernel-dkms", version, "closed", "nvidia-kernel-open-dkms"),
        Deb("libcuda1", version),
        Deb("libnvidia-ml1", version, scripts={"postinst": RENDER}),
        Deb(
            "nvidia-driver-cuda",
            version,
            {"Depends": libraries},
            files={"usr/bin/nvidia-smi": '#!/bin/sh\nexec fake-kernel smi "$@"\n'},
        ),
        Deb(
            "nvidia-persistenced",
            version,
            {"Depends": f"libnvidia-ml1 {same}"},
            files={"usr/lib/systemd/system/nvidia-persistenced.service": UNIT},
        ),
        Deb("nvidia-driver", version, {"Depends": libraries}),
        Deb("nvidia-open", version, {"Depends": f"nvidia-driver {same}, nvidia-kernel-open-dkms {same}"}),
        Deb("cuda-drivers", version, {"Depends": f"nvidia-driver {same}, nvidia-kernel-dkms {same}"}),
    ]


def beside() -> list[Deb]:
    return [
        Deb("cuda-nvcc-13-0", "13.0.88-1"),
        Deb("cuda-cudart-dev-13-0", "13.0.96-1"),
        Deb("cuda-toolkit-13-0", "13.0.2-1", {"Depends": "cuda-nvcc-13-0, cuda-cudart-dev-13-0"}),
        Deb("nvidia-container-toolkit", "1.18.0-1"),
    ]


def distribution(kernel: str) -> list[Deb]:
    return [
        Deb("dkms", "3.0.10-8+deb12u1"),
        Deb(f"linux-headers-{kernel}", "1-1", files={f"usr/lib/modules/{kernel}/build/Makefile": "\n"}),
        Deb("nvidia-driver", "535.261.03-1~deb12u1"),
        Deb("libcuda1", "535.261.03-1~deb12u1"),
    ]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    key = Key(folder.parent / "driver-sources.key")
    released = [deb for version in RELEASES for deb in driver(version)]
    repository(folder / "nvidia", [*beside(), *released], key, origin="NVIDIA")
    repository(folder / "debian", distribution(os.uname().release), key, origin="Debian")
    shutil.copy(HERE / "kernel.py", folder)
    shutil.make_archive(str(folder), "tar", folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
