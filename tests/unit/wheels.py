# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Published SGLang wheels the tests read: pinned by version and hash, fetched once, never committed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ANY = "py3-none-any"
CP311 = "cp311-cp311-manylinux_2_34_x86_64"
# Every release from 0.4.6 on: what follows the version in the file's name, sha256 of the file.
_PINNED = {
    "0.4.6": (ANY, "7f54dd9fa19b54d39f34a0905c1b6e1b02e7b7d1346bd03d7b6e2c05d002cb68"),
    "0.4.6.post1": (ANY, "ae62fff1bbdd2c8d4c0b208e79ab8f8ba5c1969775e0fe2ce19679983e997bc5"),
    "0.4.6.post2": (ANY, "d33254aefa32471912f48810dc7892b5beae853ccaa00044ff54a88a4c439ab1"),
    "0.4.6.post3": (ANY, "c541a110aa3b1ed6d927c351b9a93e63ad4756a343dfe5cacd3e9fffe2794af5"),
    "0.4.6.post4": (ANY, "fab57aae97d72e2fb3504d4e39a0b4905a43b6293b95d6712329ff87cbacebfe"),
    "0.4.6.post5": (ANY, "2a48053bd975e09ff10eabf1ef8bab4c913f3c3e16a3e45c13be1b4543cfeaed"),
    "0.4.7": (ANY, "c897284d8ca4fe7f2906a89775ad9609666d369ed70aded908722630ece34a54"),
    "0.4.7.post1": (ANY, "cfe09535bdc0cd3b3aa2670c2bdf7ce158fa508dc1defd636781822c99112257"),
    "0.4.8": (ANY, "a62f904812213ead0562982791a462925926681fc1c1cea8f9a8e22d83557516"),
    "0.4.8.post1": (ANY, "0c68bd3b461a910f1b135d64df7eb967ab8be73a7f17c9859c957d11c140d0e1"),
    "0.4.9": (ANY, "8c2a13c37bc505930675f907fadbd66eef0539c32e31343be1bd2c34a3cd4c80"),
    "0.4.9.post1": (ANY, "8191d592537f13cfa674b745496c38a3ee97de24755d371f09200093536a961c"),
    "0.4.9.post2": (ANY, "d9ed82adbccf471e0a6cb497b0bee9b64822489f072044ff133a2d3fa32303fc"),
    "0.4.9.post3": (ANY, "954a31faefbd69668f837df1b3734bbde172d12e3b9d85346599380d999bda3e"),
    "0.4.9.post4": (ANY, "5385604f66a84ebc200e355743eaf64dc4cbe733435bb07018106013e50cd06a"),
    "0.4.9.post5": (ANY, "63e172dbc4dc84d94c0a484f436cd5e6ba38010cbe9d6022e1199ed2982e2832"),
    "0.4.9.post6": (ANY, "8ad7d0f552aa8549ef8eca2404d8c51e967891c4f2062bfe7c1362c904502607"),
    "0.4.10": (ANY, "93b4eaca8f2815477e3a4005639cda095f24f1f7435b5898a62acb48c327bf2b"),
    "0.4.10.post1": (ANY, "60b6132ff37ed501091fd1e594d75bdbe404cffb8460bed02175a26f6f8a3c34"),
    "0.4.10.post2": (ANY, "ca31b6d33d8b770b1e6d0271be855002c5333304fb440c412b43dbdc56be0a22"),
    "0.5.1": (ANY, "572c02d83674245899f516af397a38d113935a97660f3e882d20c1c971820909"),
    "0.5.1.post1": (ANY, "79d22923502db99d2c41faad3ef423c7961bbabe8a9af8149aa0d27a7d4c093e"),
    "0.5.1.post2": (ANY, "10c6097a9a165252070a66b3c8bf38718e49e72019607f18f2cb70c50dbb4925"),
    "0.5.1.post3": (ANY, "f92f56f6fa6320012872da1fe37317e665df556af0272eff67af8afb3993ec0c"),
    "0.5.2": (ANY, "83aae146f3913ed0802bb1ea356facff47efe0e7d18041a3f143de9ef6e44b2c"),
    "0.5.3": (ANY, "14b20822b7c36d7069556e559181bcaa1d3d44b2b0fcbf8818313af4ca22ae7f"),
    "0.5.3.post1": (ANY, "0f224b43bda2a771c6a56b03f01bb3ee4aefdf213a322ca33451a845d6f938d8"),
    "0.5.3.post2": (ANY, "a2d12288e5c2fd8dd1d1036114ba6ab9ab9ff18822c53618e70566803b5ea160"),
    "0.5.3.post3": (ANY, "809fd0c8c0847cd95cf28364ff50475a4d5015c8857b22736c69f3eb12810f0e"),
    "0.5.4": (ANY, "342b370145e33f232bef21b73da119d4a96202a0386ebcd54cdbf46a11fbeda3"),
    "0.5.4.post1": (ANY, "ed919059d777f4c3a1e029239c16969188623e847ec0b9c23e2d4856e07f70f4"),
    "0.5.4.post2": (ANY, "3853ad6538a86b663836825adbda54d154cb4f244523bc72daff7de28bc83e36"),
    "0.5.4.post3": (ANY, "054f96cd9f80acc98de740cd6f79330d2e9b61c2efd0692da96f995a9f796821"),
    "0.5.5": (ANY, "3c57f135ec0a7a5cf6ae4ed5e0b231d7bf7e0fae588bbc1a881560f1c18db995"),
    "0.5.5.post1": (ANY, "a470f7c3ce837a8e414bbeb96da2563e9974f042e03425e8889b373aaeb58180"),
    "0.5.5.post2": (ANY, "938d0445dc8116e1b80c223efc875c6738eb6d69ebf78ace6817e06ac15a79d0"),
    "0.5.5.post3": (ANY, "0283d290a480e56201cab6e42bc5cf5f505f600a9508d004c06283b052f60203"),
    "0.5.6": (ANY, "c32b6a5bafcda41c2f299ed4a1fbe8401946076b4e010fe8feb5b8a9712bf66b"),
    "0.5.6.post1": (ANY, "717dd3e1a64a4ac4a14dc791d123c1f90d34fca809237d52e7af39238c560d24"),
    "0.5.6.post2": (ANY, "cb542f7adeec56bbb5598443c52d0f347fab74dbb5df09d37cad69eaec780c54"),
    "0.5.7": (ANY, "b77f9e5ca5a2ab19b3efba725958fc4de20ba97880e383738c695e8611b51100"),
    "0.5.8": (ANY, "b7fbd890f6edd87f46c6e3ce72d592316af316f183c9bd999c3cc44b20fa2451"),
    "0.5.8.post1": (ANY, "3fe5ddf6d8b47b234bb192737eb52c94e76282bf910b1185e020f88ec7367e6e"),
    "0.5.9": (ANY, "8a936c4d25fea605f44254e533cff2144c73ceffbc1f8738aba393461bbb64d1"),
    "0.5.10": (ANY, "ac8855a5d57dac8831fee526bca5212f1ae451f378e2ab08b3baecbc4deb4076"),
    "0.5.10.post1": (ANY, "a854a68b11caf6b4b55c241a44378a7cdede7ede325db85c955f131506703bc6"),
    "0.5.11": (CP311, "fe0748beaff218d3e16c9018a5e19f018db06fc3c7ac4f90d2f93da1cf074b6f"),
    "0.5.12": (CP311, "4ed786a38655851fd055ef57380c34d29b87753b53f63457309f51e5bf48c2e6"),
    "0.5.12.post1": (CP311, "94b3f3cc6b97f1364f247b8d9c1d106ec63cf22c55d6b65bc40ff29b0206ef5f"),
    "0.5.13": (CP311, "9d26266ab7e99165098f9e173f4a5a0ef6a0b64a6f30ef0b5ee859eead37e75a"),
    "0.5.13.post1": (CP311, "1c1653ecf2893c7d7b1cf0c3e1cc9b7550ebad95c809de2f44bcc91b7a1e1fe3"),
    "0.5.14": (CP311, "4fe16056b45c8aca00f5f90ceb174dc3a62a3f5dccf159c791370795cd00fc99"),
    "0.5.15": (CP311, "21492759b4b99e117bd81610f633422f3fdae2896c2cde6931eab886deccc44f"),
    "0.5.15.post1": (CP311, "8e182e1c449197cb6f98716a7cf432a3ea7af78c172f9b840ab28ad9e6cda9b4"),
    "0.5.16": (CP311, "d5f345a18953dd35df568ac56bdcb7f5ee910ab39efea4469b714556d1070713"),
    "0.5.17": (CP311, "575e38f5683624ded3b4bb267f637a098e5ed37d13a1d1ff5ea09bd781a04d16"),
    "0.5.18": (CP311, "e97b585dd2d5db2802599feba47c84cce972f5e1231a6816fef996200207b5cf"),
    "0.5.19": (CP311, "425e87377e725d03db8262382008f3fd9561a6cf5d82f485f8b9929f02ffe12b"),
    "0.5.20": (CP311, "1573527042f4f6b4ead838302818595fc77fdc611dbcc2e40cd150fbc8f8513c"),
    "0.5.21": (CP311, "96c029f75dec99baa33a5db3d41b1bebefdd6bcfba3a2f7c807fe1cf49a87c20"),
    "0.5.22": (CP311, "cc9a0f15bd8f877a0584fdb7a1702240177a1f1cc8d17c978715161717b9037b"),
    "0.5.23": (CP311, "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937"),
}
# version: (file name, sha256)
PINS = {version: (f"sglang-{version}-{tag}.whl", sha256) for version, (tag, sha256) in _PINNED.items()}


class NoWheel(Exception):
    """A pinned wheel is neither in the cache nor to be had."""


def cache_folder() -> Path:
    return Path(os.environ.get("INFEROPS_CACHE", "~/.cache/inferops")).expanduser() / "wheels"


def fetch(version: str) -> Path:
    """Return the wheel of a pinned version out of the cache, downloading it once. Raises NoWheel with the reason."""
    name, sha256 = PINS[version]
    path = cache_folder() / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with (path.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another test run may want it too
            if not path.exists():
                _download(version, path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        path.unlink()
        raise NoWheel(f"{name} is not the file pinned by sha256 {sha256}; removed from the cache")
    return path


def _download(version: str, path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", "3.11", "--platform", "manylinux_2_34_x86_64", "--platform", "any"]
    command += ["--dest", str(folder), f"sglang=={version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode == 0:
            (folder / path.name).replace(path)  # whole or not there
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise NoWheel(f"sglang {version} could not be downloaded: {exc}") from exc
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise NoWheel(f"sglang {version} could not be downloaded: {last}")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PINS:
        print(fetch(wanted))
