# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part of the table of faults that package managers show."""

from __future__ import annotations

from .fault import DKMS, KERNEL, PACKAGES, Fault

OF_PACKAGES = (
    Fault(
        "DRV-BAD-KEY",
        "the key of the package source is not the expected one",
        (PACKAGES,),
        (
            r"The checksum for .* did not match",
            r"NO_PUBKEY [0-9A-F]+",
            r"(BADSIG|EXPKEYSIG|GPG error:)",
            r"is not signed\.",
            r"GPG check FAILED",
            r"Conflicting values set for option Signed-By",
        ),
        "The file with the key changed, a mirror signs with its own key, or a second source file names another key.",
        "Compare the key with one from a place you trust, then set nvidia_stack_key_sha256 to its checksum. Remove the second "
        "source file.",
    ),
    Fault(
        "DRV-SOURCE-UNREACHABLE",
        "the package source does not answer",
        (PACKAGES,),
        (
            r"Failed to fetch (?!.*Hash Sum)",
            r"Could not (resolve|connect)",
            r"Temporary failure resolving",
            r"Connection (refused|timed out)",
            r"Failed to (update apt cache|download metadata for repo)",
            r"Request failed|<url[o]pen error|HTTP Error \d+|File not found - /",
        ),
        "No network, a proxy, or a mirror that lacks this distribution.",
        "Try the address by hand from the host. Behind a proxy set nvidia_stack_environment; without a network use "
        "nvidia_stack_source: offline with a copied repository.",
    ),
    Fault(
        "DRV-LOCKED",
        "another package manager is at work",
        (PACKAGES,),
        (
            r"Could not get lock",
            r"Unable to (acquire|lock)",
            r"is another process using it",
            r"Waiting for process with pid \d+ to finish",
        ),
        "unattended-upgrades or a person holds the lock of dpkg or rpm.",
        "Wait for it (nvidia_stack_lock_timeout_s) and run again; do not remove lock files.",
    ),
    Fault(
        "DRV-HALF-DONE",
        "the package manager was interrupted",
        (PACKAGES,),
        (
            r"dpkg was interrupted, you must manually run",
            r"dpkg: error processing package .*nvidia",
            r"Sub-process /usr/bin/dpkg returned an error code",
        ),
        "A package is unpacked and not configured: power loss, a kill, or a build that failed.",
        "Run the role again: it configures what is half done before anything else. Comes it back, see the finding beside this "
        "one.",
    ),
    Fault(
        "DRV-HELD",
        "held packages are in the way",
        (PACKAGES,),
        (
            r"Held packages were changed and -y was used without",
            r"you have held broken packages",
            r"following packages have unmet dependencies",
            r"Depsolve Error",
            r"nothing provides .* needed by",
        ),
        "Somebody moved part of the set, or a package of another maker wants another version of it.",
        "Let the role move the whole set: nvidia_stack_driver_branch or nvidia_stack_driver_version. See `apt-mark showhold` "
        "and "
        "`apt-cache policy` for who offers what.",
    ),
    Fault(
        "DRV-NO-SPACE",
        "a file system is full",
        (PACKAGES, DKMS, KERNEL),
        (r"No space left on device", r"You don't have enough free space", r"needs \d+\s?[MG]B (more space )?on the / filesystem"),
        "Driver, build and initramfs need room in / and /boot.",
        "apt-get clean, remove old kernels (apt-get autoremove --purge), then run again.",
    ),
)
