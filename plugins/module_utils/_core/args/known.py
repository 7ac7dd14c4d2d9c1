# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the interpreter is told rather than reads: host, model, environment, and how decisions are declared.

Everything else comes from the release's own source. Tables are keyed by the function names SGLang uses (seen in 0.4.6 … 0.5.23).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import known_hardware, known_model, known_outside, known_record
from .facts import Facts
from .interpret.knowledge import Knowledge

RECORD = "ServerArgs"


def knowledge(
    facts: Facts, model_config: Mapping[str, Any] | None, model_path: str | None, read_text: Callable[[str], str] | None = None
) -> Knowledge:
    """Return the hooks for one host and one model. read_text reads the config.json of other checkpoints, such as a draft."""
    host = known_hardware.Host(facts)
    model = known_model.Model(model_config, model_path, read_text)
    outside = known_outside.Outside(host, model, facts)
    return Knowledge(
        record_name=RECORD,
        external=outside.external,
        has_external=outside.has_external,
        call_external=outside.call_external,
        importable=outside.importable,
        config_attribute=known_model.config_attribute,
        functions={**host.functions(), **model.functions(), **known_record.FUNCTIONS, **known_outside.FUNCTIONS},
        classes={**known_record.CLASSES, **model.classes()},
        name=outside.name,
    )
