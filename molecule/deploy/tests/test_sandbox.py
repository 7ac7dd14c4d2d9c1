"""Each sandbox setting of the unit: it holds, it is what holds, and it leaves the engine what it needs.

The probes run in services of their own with the settings of the unit as they stand on the host: deeds as root, so that the
setting alone is in the way, and needs as the unit's user. Loading a module and real cards are out of reach of a container: the
folder of the modules and the stand-in NVML are asked instead.
"""

from __future__ import annotations

import shlex
import textwrap

import pytest
from conftest import PROMOTED_UNIT

# What a service must not be able to do; the code fails where it cannot.
DEEDS = {
    "NoNewPrivileges": "assert 'NoNewPrivs:\\t0' in open('/proc/self/status').read()",
    "PrivateTmp": "open('/tmp/inferops-probe', 'w').close(); assert os.path.exists('/proc/1/root/tmp/inferops-probe')",
    "ProtectSystem": "assert any([writes('/usr/inferops-probe'), writes('/etc/inferops-probe')])",
    "ProtectHome": "assert any([writes('/root/inferops-probe'), writes('/home/inferops-probe')])",
    "ProtectControlGroups": "assert any(m.split()[5].startswith('rw') for m in MOUNTS if ' - cgroup' in m)",
    "ProtectKernelTunables": "t = open('/proc/sys/kernel/printk').read(); open('/proc/sys/kernel/printk', 'w').write(t)",
    "ProtectKernelModules": "assert os.path.exists('/usr/lib/modules/inferops-probe')",
    "RestrictSUIDSGID": "open(MINE, 'w').close(); os.chmod(MINE, 0o4755); assert os.stat(MINE).st_mode & 0o4000",
}
HEAD = """
import ctypes, mmap, os, sys
MOUNTS = open('/proc/self/mountinfo').read().splitlines()
MINE = '/dev/shm/inferops-probe-%d' % os.getuid()
def writes(path):
    try:
        open(path, 'w').close()
    except OSError:
        return False
    return True
"""
# What the engine must still be able to do, as its user.
NEEDS = {
    "machine code made at run time (JIT)": """
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex('b82a000000c3'))
        call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        assert call() == 42""",
    "a compiled kernel kept in the cache folder and loaded from there": """
        import shutil, ctypes.util
        libm = next(m.split()[-1] for m in open('/proc/self/maps') if 'libc.so' in m)
        there = os.path.join(os.environ['CACHE'], 'probe.so')
        shutil.copyfile(libm, there)
        ctypes.CDLL(there)
        os.remove(there)""",
    "a compiler's temporary files that are executed": """
        import shutil, subprocess, tempfile
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy('/bin/true', folder)
            subprocess.run([folder + '/true'], check=True)""",
    "NVML": """
        nvml = ctypes.CDLL('libnvidia-ml.so.1')
        count = ctypes.c_uint()
        assert nvml.nvmlInitWithFlags(0) == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        assert count.value == 8""",
    "shared memory between the ranks (NCCL)": """
        from multiprocessing import shared_memory
        mine = shared_memory.SharedMemory(create=True, size=64 << 20)
        if os.fork() == 0:
            theirs = shared_memory.SharedMemory(name=mine.name)
            theirs.buf[-1] = 7
            os._exit(0)
        os.wait()
        assert mine.buf[len(mine.buf) - 1] == 7
        mine.unlink()""",
    "memory of another rank read directly (NCCL without copies)": """
        word = ctypes.create_string_buffer(b'weights')
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(read, 1)
            os._exit(0)
        class Part(ctypes.Structure):
            _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
        got = ctypes.create_string_buffer(8)
        here, there = Part(ctypes.addressof(got), 8), Part(ctypes.addressof(word), 8)
        libc = ctypes.CDLL(None, use_errno=True)
        n = libc.process_vm_readv(child, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        os.write(write, b'x')
        os.wait()
        assert n == 8 and got.value == b'weights', os.strerror(ctypes.get_errno())""",
    "locked memory (pinned buffers)": """
        buffer = mmap.mmap(-1, 1 << 20)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(buffer))), ctypes.c_size_t(1 << 20)) == 0""",
    "device files": "assert os.access('/dev/null', os.W_OK) and os.path.exists('/dev/zero')",
}


@pytest.fixture
def settings(host) -> dict[str, str]:
    """The [Service] settings of the promoted unit, as they stand on the host."""
    text = host.check_output("systemctl cat %s", PROMOTED_UNIT).partition("[Service]")[2].partition("\n[")[0]
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


@pytest.fixture
def probe(host, settings):
    """Run Python in a service with these settings of the unit."""

    def run(code: str, names: list[str], *, user: bool = False):
        wanted = [f"{name}={settings[name]}" for name in names]
        wanted += [f"{name}={settings[name]}" for name in ("User", "Group", "LimitMEMLOCK") if user]
        cache = settings["WorkingDirectory"]
        words = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", f"--setenv=CACHE={cache}"]
        words += [word for setting in wanted for word in ("-p", setting)] + ["python3", "-c", HEAD + code]
        return host.run(shlex.join(words))

    return run


def test_every_sandbox_setting_has_its_proof(settings):
    """A new one in the unit needs its deed here."""
    known = (
        "NoNewPrivileges",
        "Private",
        "Protect",
        "Restrict",
        "System",
        "Capability",
        "Device",
        "MemoryDeny",
        "Lock",
        "ReadOnly",
    )
    assert {name for name in settings if name.startswith(known)} == set(DEEDS)


@pytest.mark.parametrize("name", DEEDS)
def test_a_setting_holds_and_without_it_nothing_would(host, probe, name):
    host.check_output("mkdir -p /usr/lib/modules && touch /usr/lib/modules/inferops-probe")
    try:
        assert probe(DEEDS[name], [name]).rc != 0, "done in spite of the setting"
        without = probe(DEEDS[name], [])
        assert without.rc == 0, without.stderr
    finally:
        host.run(
            "cd / && rm -f usr/$P etc/$P root/$P home/$P tmp/$P usr/lib/modules/$P dev/shm/$P-*".replace("$P", "inferops-probe")
        )


@pytest.mark.parametrize("need", NEEDS)
def test_the_engine_keeps_what_it_needs(probe, need):
    done = probe(textwrap.dedent(NEEDS[need]), list(DEEDS), user=True)
    assert done.rc == 0, done.stderr


def test_the_running_server_has_them(host):
    """Not the text alone: what systemd applied to the process that serves."""
    unit = next(
        line.split()[0]
        for line in host.check_output("systemctl list-units --plain --no-legend --state=running 'sglang-*.service'").splitlines()
        if "front" not in line
    )
    shown = dict(line.split("=", 1) for line in host.check_output("systemctl show %s", unit).splitlines() if "=" in line)
    values = {"NoNewPrivileges": "yes", "ProtectSystem": "full", "ProtectHome": "read-only"}
    assert {name: shown[name] for name in DEEDS} == {name: values.get(name, "yes") for name in DEEDS}
    assert "NoNewPrivs:\t1" in host.file(f"/proc/{shown['MainPID']}/status").content_string
