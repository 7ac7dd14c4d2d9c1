"""Stands in for the pip bootstrap that ansible-test would download: pip comes from the Python at hand, offline."""

import ensurepip
import os
import subprocess
import sys
from pathlib import Path

ensurepip.bootstrap()
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
environment = dict(os.environ)
if BUNDLE.exists():
    # ansible-test starts this with a bare environment, without the machine's own certificate settings.
    environment["PIP_CERT"] = str(BUNDLE)
words = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "-q", *words], env=environment))
