# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Engine releases on a host: what a lock asks of it, how an environment is made whole, which ones may go."""
