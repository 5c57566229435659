"""Python imports this module when it starts, so each process of the campaign has its crash points.

Nothing else may import it: Debian's own Python has a module of this name, and has loaded that one by then.
"""

from crash_points import install

install()
