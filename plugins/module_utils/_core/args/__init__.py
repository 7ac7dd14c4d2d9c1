# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Arguments of a SGLang release, read from its source: flag table, resolution, findings. Nothing here imports SGLang."""
