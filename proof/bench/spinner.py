"""Keeps a core from going idle, at the lowest priority, for as long as its parent lives.

The kernel hands a pty's bytes over in a worker of its own. Where another core is idle that worker goes there, at 25 to 40 µs a
wake-up, and sometimes it doesn't: the same exchange then takes 15 or 95 µs, whatever bridge is measured. With no core idle all
the work stays where the measurement was put.
"""

import os

os.nice(19)
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
