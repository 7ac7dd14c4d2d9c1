"""What the clock believes about the machine: each number with its unit and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _named(default: float, source: str):
    return field(default=default, metadata={"source": source})  # pylint: disable=invalid-field-call


@dataclass(frozen=True)
class Parameters:
    """Costs of one decoder on one kind of card.  Times in ms, sizes in GB (1e9 bytes), bandwidth in GB/s.

    ``source`` is one of: ``config`` (arithmetic on the published model configuration and checkpoint format), ``vendor``,
    ``fitted`` (chosen so that one of four published figures comes out), ``assumed`` (nobody measured it).
    """

    # Model: Kimi K2.6, routed experts 4.5 bit, everything else BF16.
    attention_gb: float = _named(0.2022, "config: 101.1 M parameters per layer, 2 bytes each")
    shared_gb: float = _named(0.0936, "config: shared expert 44.0 M + router 2.75 M parameters per MoE layer, 2 bytes each")
    dense_gb: float = _named(0.793, "config: 3 x 7168 x 18432 parameters of the first layer, 2 bytes each")
    dense_layers: int = _named(1, "config: first_k_dense_replace")
    experts_gb: float = _named(0.1982, "config: 8 routed experts x 3 x 7168 x 2048 parameters at 4.5 bit")
    head_gb: float = _named(2.35, "config: 163840 x 7168 parameters, 2 bytes")
    routed_experts: int = _named(384, "config: n_routed_experts")
    experts_per_token: int = _named(8, "config: num_experts_per_tok")
    bandwidth_gb_s: float = _named(1600.0, "vendor: 12,481 MHz x 2 x 512 bit / 8")
    # Fitted, one per published figure.
    bandwidth_share: float = _named(0.7634, "fitted: 35.6 tok/s at 1, graphs on")
    launch_ms_per_layer: float = _named(0.20401, "fitted: 24.7 tok/s at 1, graphs off")
    occupancy_ms: float = _named(3.64164, "fitted: 95.6 tok/s at 8, graphs off, no async depth")
    hidden_share: float = _named(0.66896, "fitted: 156.4 tok/s at 16, graphs on, async depth 8")
    # Assumed.
    hop_ms: float = _named(0.10, "assumed: activations to the next stage, 14 KB over PCIe plus the send")
    prefill_ms_per_token: float = _named(
        0.020, "assumed: per stage and prompt token; expert streaming during prefill is not modelled"
    )
    prefill_base_ms: float = _named(2.0, "assumed: per stage and prefill pass")
    allreduce_ms_per_layer: float = _named(0.11, "assumed: two all-reduces per layer when tp_size > 1")
    kernel_factor: float = _named(
        1.0, "assumed: time of a decode pass / time to stream its weights; > 1: kernels that do not suit"
    )

    @classmethod
    def sources(cls) -> dict[str, str]:
        return {f.name: f.metadata["source"] for f in fields(cls)}

    def milliseconds(self, gigabytes: float) -> float:
        """Time to read this much weight from one card's memory [ms]."""
        return gigabytes / (self.bandwidth_gb_s * self.bandwidth_share) * 1000.0

    def expert_spread(self, requests: int) -> float:
        """Distinct experts that a batch of ``requests`` tokens touches, in units of one token's experts.

        Uniform routing.  1 for one request; grows more slowly than the batch.
        """
        untouched = (1 - self.experts_per_token / self.routed_experts) ** requests
        return self.routed_experts * (1 - untouched) / self.experts_per_token


FITTED = Parameters()
