"""A stand-in for the SGLang server: real arguments, real HTTP API, simulated GPUs.

Nothing here is a measurement of a real card.  Every answer that describes the server says ``simulated``.
"""

__version__ = "0.1.0"
