"""What may be a secret is taken out of a text, before that is shown, written or sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

HIDDEN = "***"

SHORT = 400
"""Length of a text that is likely to come again soon: then it is not searched again."""

_SECRET = (
    r"(?:token|secret|passw(?:or)?d|passphrase|pwd|credentials?|auth"
    r"|(?:api|access|secret|private)[-_]?key)"
)
_FLAG = re.compile(rf"-[\w-]{{0,40}}{_SECRET}", re.IGNORECASE)

_PATTERNS = (
    # --token X, --api-key=X
    re.compile(rf"(?P<kept>{_FLAG.pattern}(?:=|\s+(?!-)))(?:\"[^\"]*\"|'[^']*'|\S+)", re.IGNORECASE),
    # WANDB_API_KEY=X, in an environment or before a command
    re.compile(
        r"(?P<kept>\b[A-Z0-9_]{0,60}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)=)(?:\"[^\"]*\"|'[^']*'|\S+)"
    ),
    # api_key = "X", password: 'X', in a source
    re.compile(
        rf"(?P<kept>\b[\w.]{{0,40}}{_SECRET}[\"']?\s{{0,4}}(?:==?|:)\s{{0,4}}(?P<quote>[\"']))[^\"'\n]+(?=(?P=quote))",
        re.IGNORECASE,
    ),
    # https://user:password@host
    re.compile(r"(?P<kept>\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,99}:)[^\s/@]{1,99}(?=@)", re.IGNORECASE),
    # https://host/path?token=X
    re.compile(rf"(?P<kept>[?&][\w-]{{0,40}}(?:{_SECRET}|sig|signature)=)[^\s&]+", re.IGNORECASE),
    # Authorization: Bearer X
    re.compile(r"(?P<kept>\bBearer\s+)[\w.~+/-]+=*", re.IGNORECASE),
    # keys that their issuers have made recognisable: Hugging Face, GitHub, OpenAI, AWS, Slack, JWT
    re.compile(
        r"(?P<kept>)\b(?:hf_\w{20,}|gh[pousr]_\w{20,}|sk-[\w-]{20,}|AKIA[0-9A-Z]{16}|xox[a-z]-[\w-]{10,}"
        r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    ),
)


def redacted(text: str) -> str:
    """The text without what may be a secret."""
    return _known(text) if len(text) < SHORT else _redacted(text)


def _redacted(text: str) -> str:
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<kept>{HIDDEN}", text)
    return text


_known = lru_cache(maxsize=4096)(_redacted)


def redacted_words(command: Sequence[str]) -> tuple[str, ...]:
    """The words of a command without what may be a secret, which a word before it may say."""
    before = ("", *command)
    return tuple(
        HIDDEN if _FLAG.fullmatch(flag) and not word.startswith("-") else redacted(word)
        for flag, word in zip(before, command, strict=False)
    )
