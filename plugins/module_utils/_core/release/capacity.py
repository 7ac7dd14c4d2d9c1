# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether enough others serve to take this server out: asked of its routers when its turn comes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from ..router.api import RouterApi
from .host import Host


def check_capacity(host: Host, front: Mapping[str, Any]) -> None:
    """Refuse while a router lists fewer healthy others than the share asked for; a router that does not tell counts as none."""
    ratio = front.get("min_serving_ratio") or 0.0
    if front["kind"] != "router" or not ratio:
        return
    key = (host.read(Path(front["key_file"])) or "").strip() or None if front.get("key_file") else None

    def send(method: str, url: str, key: str | None, body: Mapping[str, Any] | None) -> tuple[int | None, str]:
        answer = host.http(url, key=key, body=body, timeout_s=5)
        return answer.status, answer.body

    own = str(front["worker"]).rstrip("/")
    for url in front["routers"]:
        workers = RouterApi(url.rstrip("/"), key, send).workers()
        others = [worker for worker in workers.values() if worker.url != own]
        total = len(workers.keys() | {own})
        left = sum(worker.healthy for worker in others)
        if left < ratio * total:
            down = sorted(worker.url for worker in others if not worker.healthy)
            raise InferopsError(
                f"{left} of {total} servers would be left, {ratio:.0%} are to serve at any time; this one serves on",
                where=f"sglang_release_min_serving_ratio, by the list of {url}",
                why=f"not healthy: {', '.join(down)}" if down else "the router lists no more",
                do="bring the others into service first, or ask for a smaller share",
            )
