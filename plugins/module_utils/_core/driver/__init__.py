# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The NVIDIA driver stack of a host: what is there, what is wanted, the steps between them, and what went wrong."""
