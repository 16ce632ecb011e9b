# SPDX-License-Identifier: Apache-2.0
"""What the checks of the sources (check_files.py, check_layers.py) share: the command line and its report."""
import pathlib
import sys


def report(breaches, all_clear):
    """Prints what `breaches(root)` yields for the tree named on the command line (default: this one); the exit code."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = list(breaches(root))
    print("\n".join(found) if found else all_clear)
    return 1 if found else 0
