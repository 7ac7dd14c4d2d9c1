# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules over one parsed and resolved command line. Each is a function of the Context that yields findings."""
