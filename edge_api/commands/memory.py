"""What is there to stay, out of the way of Python's collector of cycles.

Under load the collector would look through all modules and posts about once a second, and nobody
is answered meanwhile: with that the slowest hundredth of all answers took twice as long.
"""

import gc


def settle() -> None:
    """Drop what is garbage, and have the collector pass over all the rest from now on.

    What is let go later is freed as ever; if it stands in a cycle, at the next call. It holds the
    interpreter for some 0.1 s.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
