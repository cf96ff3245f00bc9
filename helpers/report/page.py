"""A report as one HTML file: no script, nothing loaded from elsewhere, light or dark by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..model.facts import ProcessView, RankView, Report, Snapshot
from ..model.wording import by_number, child_name, place_in, spans
from . import markup
from .markdown import section
from .markup import code, folded, text
from .parts import Row, table
from .text import HEAD, facts, headline, lists
from .timeline import timeline

_STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #ffffff; --soft: #f1f3f5;
  --line: #868e96; --bad: #b02a1a; --good: #14692b; --wait: #8a5300; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --back: #16181a;
  --soft: #24282c; --line: #868e96; --bad: #ff8a7a; --good: #74d68a; --wait: #f0b860;
  --link: #86bdf5; } }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
.error, .hang { color: var(--bad); } .ok { color: var(--good); } .running { color: var(--wait); }
.summary { font-size: 1.1rem; }
.wide, details, figure { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem;
  border-bottom: 1px solid var(--line); }
th { background: var(--soft); }
caption, figcaption { text-align: left; font-weight: bold; padding: .3rem 0; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; }
figure { margin: 1rem 0 0; }
a { color: var(--link); overflow-wrap: anywhere; }
"""


def to_html(report: Report, snapshots: Sequence[Snapshot] = ()) -> str:
    """One self-contained page. Everything that comes from the job is escaped.

    Args:
        report: what it says.
        snapshots: of the run, in the order of time, for its picture; without any there is none.
    """
    verdict = report.verdict
    body = [f'<h1 class="{escape(verdict.outcome)}">{escape(headline(report))}</h1>']
    if verdict.summary:
        body.append(f'<p class="summary">{text(verdict.summary)}</p>')
    if snapshots:
        picture = timeline(snapshots, verdict, width=960, verdict_at=report.verdict_at)
        body.append(f"<figure><figcaption>The ranks over time</figcaption>{picture}</figure>")
    rows = [markup.row(text(name), [code(said)]) for name, said in facts(report)]
    body.append(markup.table("The run", (), rows))
    ranks = table(report)
    if ranks:
        body += [_ranks(ranks), *_stacks(ranks)]
    body.append(_processes(report.snapshot.ranks))
    for title, page in (("Why", report.explanation), ("What to do", report.fix)):
        if page:
            body.append(f"<section><h2>{title}</h2>{section(page)}</section>")
    for title, entries in lists(report):
        show = _link if title == "References" else text
        body.append(f"<section><h2>{text(title)}</h2>{markup.items(map(show, entries))}</section>")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(headline(report))}</title>\n<style>{_STYLE}</style>\n</head>\n"
        "<body>\n<main>\n" + "\n".join(filter(None, body)) + "\n</main>\n</body>\n</html>\n"
    )


def _ranks(rows: Sequence[Row]) -> str:
    shown = [
        markup.row(
            text(row.label),
            (
                text(row.state),
                "<br>".join([*map(code, row.doing), *map(text, row.children)]),
                code(row.at),
            ),
        )
        for row in rows
    ]
    return _wide(markup.table("Ranks", HEAD, shown))


def _stacks(rows: Iterable[Row]) -> list[str]:
    """A folded stack for each row that has one, innermost frame first."""
    return [
        folded(
            f"Stack of rank {row.label}",
            "<pre>" + "\n".join(text(place_in(frame)) for frame in row.stack) + "</pre>",
        )
        for row in rows
        if row.stack
    ]


def _processes(views: Sequence[RankView]) -> str:
    """Who is who: pids and listening ports of the ranks and of their children."""
    rows = []
    for view in by_number(views):
        name = f"rank {spans([view.rank])}"
        if view.process:
            rows.append(_process(name, view.process))
        rows += [_process(f"{name}, {child_name(child)}", child.process) for child in view.children]
    if not rows:
        return ""
    heads = ("process", "pid", "state", "listens on")
    return folded("Processes and ports", _wide(markup.table("Processes", heads, rows)))


def _process(name: str, process: ProcessView) -> str:
    ports = ", ".join(f"{port.address}:{port.port} ({port.role})" for port in process.ports)
    return markup.row(text(name), (str(process.pid), text(process.state), text(ports)))


def _wide(table: str) -> str:
    return f'<div class="wide">{table}</div>'


def _link(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        return text(url)
    return f'<a href="{text(url)}" rel="noreferrer">{text(url)}</a>'
