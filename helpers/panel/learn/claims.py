"""The claims of a lab's article: some to be judged, all of them in a table."""

from __future__ import annotations

from typing import Any

from IPython.display import display
from ipywidgets import HTML
from markupsafe import Markup

from ...labs.lab import Lab
from ...labs.questions import CLAIM_ANSWERS
from ...labs.tables import Table, claims_table
from ..show.templates import html
from ..widgets.controls import Framed
from . import learn_view
from .quiz import Question

_JUDGE = "Which of these claims hold? Judge them before you unfold the table of all claims."


class Claims(Framed):
    """Some claims of an article to be judged, and the table of all of them, folded below.

    Args:
        lab: whose claims they are.

    Attributes:
        questions: one widget for each claim that is asked.
        table: every claim, what became of it and what shows that.
    """

    def __init__(self, lab: Lab) -> None:
        self.table = claims_table(lab.file.document, lab.claims)
        self._claims = tuple(claim for claim in lab.claims if claim.asked)
        self.questions = tuple(Question(c.claim, CLAIM_ANSWERS, c.feedback) for c in self._claims)
        super().__init__([HTML(learn_view.note(_JUDGE)), *self.questions])

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        display(_Folded(self.table))

    def __repr__(self) -> str:
        lines = [f"{number}. {claim.claim}" for number, claim in enumerate(self._claims, start=1)]
        return "\n".join([_JUDGE, *lines, f"Each is one of: {', '.join(CLAIM_ANSWERS)}."])


class _Folded:
    """A table that is folded where it can be; as text it is whole."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        whole = Markup(self._table._repr_html_())
        folded = html("folded", f"All {len(self._table.rows)} claims", whole)
        return {"text/plain": repr(self._table), "text/html": folded.strip()}
