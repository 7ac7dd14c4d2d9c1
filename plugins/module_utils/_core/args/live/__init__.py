# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Live tier: the release's own interpreter resolves the command line in a throw-away process, and we write down what it does."""
