"""What is known of the hosts that the checks are made for."""

RTX_PRO_6000 = {
    "platform": "cuda",
    "gpu_name": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "gpu_count": 8,
    "sm": 120,
    "gpu_memory_mib": 97887,
}
