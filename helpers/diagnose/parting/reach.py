"""From where in a program a place can still be reached. No I/O."""

from __future__ import annotations

from .contexts import Context, Place


class Reach:
    """Whether a way leads to a place, each asked once."""

    def __init__(self) -> None:
        self._cache: dict[tuple[Context, int, Place, bool], bool] = {}

    def leads(self, context: Context, step: int, place: Place, returned: bool = False) -> bool:
        """True where a way may lead to a place, out of the functions around as well.

        Args:
            returned: True where what the step has called is over.
        """
        key = (context, step, place, returned)
        if key not in self._cache:
            self._cache[key] = self._leads(context, step, place, returned)
        return self._cache[key]

    def _leads(self, context: Context, step: int, place: Place, returned: bool) -> bool:
        lineage = place.context.lineage
        if context in lineage:
            inner = lineage[len(context.lineage) :]
            steps = inner[0].steps if inner else place.steps
            again = not returned or not inner or inner[0].through_library
            if (again and step in steps) or context.flow.leads(step, steps):
                return True
        parent = context.parent
        return parent is not None and any(
            self.leads(parent, caller, place, True) for caller in context.steps
        )
