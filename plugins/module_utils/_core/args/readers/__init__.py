# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One reader per shape the flag definitions have had, and the small evaluator they share."""
