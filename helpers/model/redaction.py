"""What may be a secret is taken out of a text, before that is shown, written or sent.

A secret is known by the name before it (`..beacon.secret_names` has the rule for names) or by its shape
(`secret_shapes`). Of a source, only literals are values; everywhere else names may be values, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from ..beacon.secret_names import ASKS, is_secret, parts
from .secret_shapes import HIDDEN, without_issued, without_random

SHORT = 400
"""Length of a text that is likely to come again soon: then it is not searched again."""

LONGEST, LINE = 2000, 400
"""Characters of an expression, and of a line before a value, that are looked at."""

Span = tuple[int, int, str]
"""Where a secret begins and ends, and what takes its place."""

_QUOTE = r"\\{0,3}[\"']"

_NAME = re.compile(
    r"(?<!\w)(?:(?<=\\)[nrt])?(?P<dash>[-+~]{0,3})"
    r"(?P<name>(?:(?:[Aa][Pp][Ii]|[Ss]ecret|[Aa]ccess|[Pp]rivate|[Aa]uth)[ ](?=[Kk]ey|[Tt]oken))?"
    r"[A-Za-z_](?:[\w.]|-(?!-)){0,99})"
)

_TYPE = r"(?:[\w.]*Secret\w*|Final|str|bytes|int|Any|Optional\[[\w.]{1,40}\])(?:[ ]?\|[ ]?None)?"

_ASSIGNED = re.compile(
    rf"(?:{_QUOTE})?\]?"
    rf"(?:[ \t]{{0,8}}(?::[ ]?{_TYPE}[ ]?=(?!=)|=>|[:=!]?=|:(?!/{{2}}))[ \t]{{0,8}}"
    rf"|[\s,]{{1,40}}(?:{_QUOTE})?[vV]alue(?:{_QUOTE})?[ ]?[:=][ ]?|>(?![\s\"'])"
    rf"|[ ]\.{{3,100}}[ ])"
)
"""Between `NAME` and `VALUE`: `NAME: str = VALUE`, `name: NAME, value: VALUE`, `<NAME>VALUE</NAME>`,
`NAME ..... VALUE`."""
_LISTED = re.compile(
    rf"{_QUOTE}[ ]?,\s{{0,40}}(?:\w{{1,20}}=[\w.]{{1,40}},\s?){{0,4}}(?:default=)?"
    rf"(?=[rbfuRBFU]?{_QUOTE}(?!-))"
)
"""Between `"--token"` and `"abc"`, and between `("HF_TOKEN"` and `"abc")`."""
_SPACE = re.compile(r"[ \t]{1,8}(?![-|&;<>])(?=\S)")
_COMMAND = re.compile(
    r"(?:\blogin\s+\S{1,100}\s+"
    r"|\b(?:set|setenv|setx|ENV|ARG|config|configure)\s+(?:-\w+\s+|set\s+)?[^\s=]*)\Z"
)
"""Before a name whose value follows a space: `.netrc`, Dockerfile, `setenv`, `npm config set`."""
_SAID = re.compile(r"[ \t]{1,4}(?:is|was|by)[ \t:]{1,4}(?=\S*\d|[\"'])|[ \t]{1,4}(?=[\"'])")
"""After the word itself: `password is abc1`, `PASSWORD 'abc'`."""

_LITERAL = re.compile(
    r"""[rbfuRBFU]{0,2}(?P<quote>\\{0,3}(?:"{3}|'{3}|["']))"""
    r"""(?P<text>(?:\\(?!["'])[^\n]|(?!(?P=quote))(?:\\["'](?<!\\\\["'])|[^\n\\])){0,4000})(?P<end>(?P=quote))?"""
)
_GROUP = re.compile(
    r"[\[{](?P<bare>[^()\[\]{}\n\"']{1,1000})[\]}]"
    r"|(?P<called>[A-Za-z_][\w.]{0,80})?[(\[{][^()\[\]{}\n]{0,1000}[)\]}]"
)
"""A list or a dictionary without quotes; a call, a subscript or what else is in brackets."""
_TOKEN = re.compile(
    r"""[rbfuRBFU]{0,2}(?P<quote>\"{3}|'{3}|["'])(?P<text>(?:\\.|(?!(?P=quote))[^\\])*?)(?P=quote)"""
    r"""|(?P<number>\d[\w.]*)|[\w.]+|[=!<>]=|[^\s]|\n"""
)
_PATH = re.compile(r"[~.]{0,2}/")
_LOOKED_UP = re.compile(
    r"(?:[\w)\]]\[|\b(?:get\w*|pop|env\w*|input|getpass|prompt)\(\s*|\bhelp[\"']?\s?[=:]\s?)\Z"
)
"""Before a text in a value that is no secret, but the name of one."""
_MARKS = {"'": re.compile(r"(?<![\w\\])'|(?<!\\)'(?!\w)"), '"': re.compile(r"(?<!\\)\"")}
"""Quotes that begin or end a text, which an apostrophe does not."""
_BARE = re.compile(
    r"""(?:(?![,;]\s)(?!["'`]?[,;&]["']?[\w.-]{1,60}["']?\s?[=:])(?!["'`)\]};,:]+(?:\s|\\n|$))"""
    r"""(?!\\["'n])(?!</)(?!["'][,)\]}:])\S)+"""
)
"""A value without quotes: up to a space, to the next `NAME=`, or to what closes the text around it."""
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|negotiate|apikey)[ \t]+(?=\S)", re.IGNORECASE)
_IN_PROSE = re.compile(r"(?=\D*\d)[^()\[\]=]+")
_REST = re.compile(r"[^\n\"']+")
_STAYS = re.compile(
    r"(?:\*+|\.{3}|\$[A-Z_]\w*|\$?\$?\{[^{}]*\}|\$\([^()]*\)|%(?:\(\w+\))?[sr]|<[^<>]*>|[\[({\\|]+|[^\w\s])"
    r"(?=[\s\"',;)\]}&:@/]|\Z)"
)
"""What stands for a value, or begins one of several lines."""
_NO_WORD = re.compile(r"(?:\\.|\{[\d,]*\}|\W)*")
_PASSED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CALL = re.compile(r"[a-z_.]+")
_WORDS = re.compile(r"pass(?:word|phrase|wd)|secret|api_?key", re.IGNORECASE)
_HEADER = frozenset(("authorization", "cookie", "cookies"))
_OF_QUERY = frozenset(("key", "sig", "signature", "code", "jwt", "sas", "assertion"))
_CODE = re.compile(
    r"""(?P<quote>\"{3}|'{3})(?:\\[\s\S]|(?!(?P=quote))[^\\])*+(?:(?P=quote)|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?|\#[^\n]*"""
)


class Source(str):
    """Lines of Python, of which only literals may be secrets."""

    __slots__ = ()


def redacted(text: str) -> str:
    """The text without what may be a secret."""
    return _redacted_line(text) if len(text) < SHORT else _redacted(text)


def redacted_source(text: str) -> str:
    """Lines of Python without the literals that may be secrets; they stay Python, and as many."""
    return _redacted(text, source=True)


def redacted_words(command: Sequence[str]) -> tuple[str, ...]:
    """The words of a command without what may be a secret, which a word before it may say."""
    return tuple(map(_word, ("", *command), command))


def redacted_value(name: str, value: str) -> str:
    """The value of a name, without what may be a secret; checksums and ids are known by their names."""
    return HIDDEN if is_secret(name, value) else _after(f"{name}: ", value)


def _after(before: str, text: str) -> str:
    """A text without what may be a secret, of which the words before it may tell."""
    shown = redacted(before + text)
    return shown[len(before) :] if shown.startswith(before) else redacted(text)


def _word(before: str, word: str) -> str:
    if before in ("-u", "--user", "--proxy-user"):
        return _after(f"{before} ", word)
    flag = _NAME.fullmatch(before)
    names_next = flag is not None and ("-" in flag["dash"] or len(parts(before)) > 1)
    if flag and names_next and not word.startswith("-"):
        return redacted_value(flag["name"], word)
    name, equals, value = word.partition("=")
    flag = _NAME.fullmatch(name)
    if equals and flag and is_secret(flag["name"], value) and not _STAYS.fullmatch(value):
        return f"{name}={HIDDEN}"
    return redacted(word)


def _redacted(text: str, source: bool = False) -> str:
    text = without_issued(text)
    return without_random(_without(text, _secrets(text, source)))


_redacted_line = lru_cache(maxsize=4096)(_redacted)
_may_name_one: Callable[[str], bool] = lru_cache(maxsize=4096)(lambda name: is_secret(name, "Zx123456"))


def _without(text: str, spans: Iterator[Span]) -> str:
    pieces, at = [], 0
    for start, end, instead in spans:
        pieces += [text[at:start], instead]
        at = end
    return "".join([*pieces, text[at:]])


def _secrets(text: str, source: bool) -> Iterator[Span]:
    """Where the values of secret names are, and what takes their place.

    In a source, what is in quotes or in a comment is text; elsewhere only literals are values.
    """
    quoted = [part.span() for part in _CODE.finditer(text)] if source else []
    at = number = 0
    for match in _NAME.finditer(text):
        start, end = match.span("name")
        if start < at or not (_may_name_one(match["name"]) or _of_query(match)):
            continue
        while number < len(quoted) and quoted[number][1] <= start:
            number += 1
        inside = (
            number < len(quoted) and quoted[number][0] < start and text[end : end + 1] not in ("'", '"')
        )
        begin = _begin(match)
        if begin is not None:
            compared = text[end:begin].strip("\"'] ") in ("==", "!=")
            code = (source and not inside) or compared
            at, spans = _values(match, begin, code=code, prose=inside)
            yield from spans


def _begin(name: re.Match[str]) -> int | None:
    """Where the value of a name begins; None where it has none."""
    text, end = name.string, name.end()
    before = text[max(0, name.start() - 130) : name.start()]
    flag = "-" in name["dash"]
    if after := _ASSIGNED.match(text, end):
        helps = flag and after[0].startswith(": ")  # `argument --token: expected one argument`
        tag = after[0] == ">" and before[-1:] != "<"
        return None if helps or tag or _closes(text, after.end(), name) else after.end()
    if (after := _LISTED.match(text, end)) and (flag or before[-4:].rstrip("\\\"'").endswith("(")):
        return after.end()
    pattern = _separator(name, before)
    after = pattern.match(text, end) if pattern else None
    return after.end() if after else None


def _separator(name: re.Match[str], before: str) -> re.Pattern[str] | None:
    """What may stand between a name and its value where no sign does."""
    asks = not ASKS.isdisjoint(parts(name["name"])[:1])
    if ("-" in name["dash"] and not asks) or _COMMAND.search(before):
        return _SPACE
    return _SAID if _WORDS.search(name["name"]) else None


def _closes(text: str, at: int, name: re.Match[str]) -> bool:
    """Whether the quote after a name ends a text that began before it in the same line."""
    quote = text[at : at + 1]
    if quote not in ("'", '"'):
        return False
    begin = text.rfind("\n", max(0, at - LINE), at) + 1
    if begin == 0 and at > LINE:  # too long a line to be counted again for each name in it
        return text[name.start() - 1] == quote != text[name.end()]
    return len(_MARKS[quote].findall(text, begin, at)) % 2 == 1


def _of_query(name: re.Match[str]) -> bool:
    before = name.string[name.start() - 1 : name.start()]
    return before in ("?", "&") and any(part in _OF_QUERY for part in parts(name["name"])[-1:])


def _values(name: re.Match[str], begin: int, *, code: bool, prose: bool) -> tuple[int, list[Span]]:
    """Where what belongs to a name ends, and what of it is secret."""
    text = name.string
    group = _GROUP.match(text, begin)
    if not code and group and group["bare"] is not None:
        inner = group.span("bare")
        hidden = text[begin] == "[" and is_secret(name["name"], group["bare"])
        return inner[0], [(*inner, HIDDEN)] if hidden else []
    if code or (group and (not group["called"] or _CALL.fullmatch(group["called"]))):
        return _in_expression(name, begin)
    scheme = _SCHEME.match(text, begin)
    begin = scheme.end() if scheme else begin
    if literal := _LITERAL.match(text, begin):
        return literal.end(), _in_literal(name, literal)
    return _in_word(name, begin, prose=prose)


def _in_word(name: re.Match[str], begin: int, *, prose: bool) -> tuple[int, list[Span]]:
    """The same of a value without quotes."""
    bare = None if _STAYS.match(name.string, begin) else _bare(name, begin)
    if bare is None or (prose and not _IN_PROSE.fullmatch(bare[0])) or not _is_hidden(name, bare[0]):
        return begin, []
    return bare.end(), [(*bare.span(), HIDDEN)]


def _is_hidden(name: re.Match[str], value: str) -> bool:
    """Whether a value without quotes is a secret, and not the variable that holds it.

    Nor, after a flag, what stands for it in a help text: `--api-key API_KEY`.
    """
    last = name["name"].rpartition(".")[2]
    same = value == (last.replace("-", "_").upper() if name["dash"] else last)
    passed = _PASSED.fullmatch(value) and _may_name_one(value.rpartition(".")[2])
    return _of_query(name) or (is_secret(name["name"], value) and not same and not passed)


def _in_literal(name: re.Match[str], literal: re.Match[str]) -> list[Span]:
    scheme = _SCHEME.match(literal["text"])
    begin, end = literal.start("text") + (scheme.end() if scheme else 0), literal.end("text")
    value = name.string[begin:end]
    if _STAYS.fullmatch(value) or not is_secret(name["name"], value):
        return []
    shell = name["dash"] or (name["name"].isupper() and name.string[literal.start() - 1] == "=")
    return [(*literal.span(), HIDDEN) if shell and literal["end"] else (begin, end, HIDDEN)]


def _bare(name: re.Match[str], begin: int) -> re.Match[str] | None:
    """A value without quotes: a word; of a header and of a password in YAML, the rest of the line."""
    text = name.string
    header = name["name"].lower().rpartition("-")[2] in _HEADER
    line = text[text.rfind("\n", 0, name.start()) + 1 : name.start()]
    yaml = text[name.end() : name.end() + 2] == ": " and not line.strip(" -")
    return (_REST if header or (yaml and _WORDS.search(name["name"])) else _BARE).match(text, begin)


def _in_expression(name: re.Match[str], begin: int) -> tuple[int, list[Span]]:
    """Where an expression ends, and its literals that are no names themselves."""
    spans: list[Span] = []
    depth, end = 0, begin
    for part in _TOKEN.finditer(name.string, begin, begin + LONGEST):
        closes = part[0] in ")]}"
        if part[0] == "#" or (depth == 0 and (closes or part[0] in ",=:#\n")):
            break
        depth += (part[0] in "([{") - closes
        end = part.end()
        spans += _of_token(name, begin, part, inside=depth > 0)
    return end, spans


def _of_token(name: re.Match[str], begin: int, part: re.Match[str], *, inside: bool) -> Iterator[Span]:
    """The secret in one token of an expression that begins at `begin`.

    Args:
        inside: whether the token is in brackets, where it may be a key or a path.
    """
    if part["number"]:
        if part.start() == begin and is_secret(name["name"], part[0]):
            yield (*part.span(), f'"{HIDDEN}"')
        return
    scheme = _SCHEME.match(part["text"] or "")
    first = part.start("text") + (scheme.end() if scheme else 0)
    value = name.string[first : part.end("text")] if part["text"] else ""
    before = name.string[max(begin, part.start() - 40) : part.start()]
    after = name.string[part.end() : part.end() + 1]
    names = _LOOKED_UP.search(before) or (inside and (_PATH.match(value) or after == ":"))
    stays = _STAYS.fullmatch(value) or _NO_WORD.fullmatch(value)
    if value and not names and not stays and is_secret(name["name"], value):
        yield (first, part.end("text"), HIDDEN)
