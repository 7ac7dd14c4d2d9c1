"""Test hosts, their image and what they are given to install; standard library only."""
