"""Small helpers shared by the training scripts."""
import functools
import logging
import time

log = logging.getLogger("caching")


def timed(fn):
    """Log how long a call took."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        try:
            return fn(*args, **kwargs)
        finally:
            log.debug("%s took %.1f ms", fn.__name__, 1e3 * (time.perf_counter() - start))

    return wrapper


def memoize(key):
    """Remember results of an expensive function, by the named argument."""

    def decorate(fn):
        store = {}

        @functools.wraps(fn)
        def wrapper(**kwargs):
            slot = kwargs[key]
            if slot in store:
                return store[slot]
            value = fn(**kwargs)
            store[slot] = value
            return value

        wrapper.cache = store
        return wrapper

    return decorate
