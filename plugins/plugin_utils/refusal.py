# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a refusal of the core becomes an error of a lookup or a filter.

ansible-core prints the message of such an error three times (summary, chain, result) and its help text once; so the one sentence
is the message, and where, why and do are the help text.
"""

from __future__ import annotations

from ansible.errors import AnsibleError
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError


def refusal(exc: InferopsError, kind: type[AnsibleError]) -> AnsibleError:
    """Return the error to raise ``from None``: its cause would only be printed once more."""
    return kind(exc.what, help_text="\n".join(str(exc).splitlines()[1:]) or None)
