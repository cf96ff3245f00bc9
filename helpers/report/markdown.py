"""The Markdown of the causes' pages and of the labs' texts, for a terminal and as HTML.

Paragraphs, lists and `code` are markup; so are *emphasised* and **strong** words where they are asked
for. Nothing else is, since a text may hold names of the job: `__init__.py` is not a strong word.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from ..model.wording import one_line, printable


class _Escaped(RendererHTML):
    """HTML that is safe in an attribute as well: quotation marks of both kinds are escaped."""

    def text(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return escape(tokens[idx].content)

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f"<code>{escape(tokens[idx].content)}</code>"


_PAGE = MarkdownIt("zero", renderer_cls=_Escaped).enable(["list", "backticks"])
_STRONG = MarkdownIt("zero", renderer_cls=_Escaped).enable(["backticks", "emphasis"])


def _stars(state: StateInline, silent: bool) -> bool:
    """Emphasis by stars; underscores are in the names of Python."""
    return state.src[state.pos] == "*" and emphasis.tokenize(state, silent)


_STRONG.inline.ruler.at("emphasis", _stars)


def section(markdown: str) -> str:
    """HTML of paragraphs and lists."""
    return str(_PAGE.render(printable(markdown)))


def inline(text: str, *, strong: bool = False) -> str:
    """HTML of one line with `code`.

    Args:
        strong: whether it may have *emphasised* and **strong** words, too; not for a text of the job.
    """
    return str((_STRONG if strong else _PAGE).renderInline(one_line(text)))


def paragraph(text: str, *, strong: bool = False) -> str:
    """`inline`, as a paragraph."""
    return f"<p>{inline(text, strong=strong)}</p>"


def plain(markdown: str, width: int) -> list[str]:
    """Lines of text, indented by two: paragraphs apart from what is above, lists with their marks."""
    lines: list[str] = []
    for block in SyntaxTreeNode(_PAGE.parse(markdown)).children:
        if lines and block.type == "paragraph":
            lines.append("")
        for number, item in enumerate([block] if block.type == "paragraph" else block.children, start=1):
            mark = {"bullet_list": "- ", "ordered_list": f"{number}. "}.get(block.type, "")
            text = " ".join(node.content for node in item.walk() if node.type == "inline")
            lines += textwrap.wrap(
                text,
                width,
                initial_indent=f"  {mark}",
                subsequent_indent=" " * (2 + len(mark)),
                break_on_hyphens=False,
            )
    return lines
