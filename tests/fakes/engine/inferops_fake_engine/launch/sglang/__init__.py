"""Stands before the installed package ``sglang`` in a process that launches the server, and only there."""
