"""Secrets that are known by their shape: keys, parts of URLs, what issuers mark, what looks random."""

from __future__ import annotations

import re

from ..beacon.secret_names import parts, vocabulary

HIDDEN = "***"

_BEGIN = r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
_PEM = re.compile(rf"{_BEGIN}(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]{{0,40}}-----)?")
BEGIN_OF_KEY = re.compile(rf"{_BEGIN}-----\s*\Z")
LINE_OF_KEY = re.compile(r"\s*(?:[A-Za-z0-9+/=]{0,80}|(?:Proc-Type|DEK-Info): .*)\s*")
"""Where a text is read line by line: the line before those of a key, and each of these."""
_LINE = re.compile(r"[^\n]+")
_URL = re.compile(
    r"(?<![\w.])(?P<scheme>[A-Za-z][\w+.-]{0,30}:(?:[\w.+-]{1,20}:){0,2}//)(?P<rest>(?:[^\s/@\"':]{0,64}:"
    r"(?!\d{1,5}[\"'\s/])[^\s@]{1,200}@(?=[\w\[]))?[^\s\"'<>`]{1,2000})"
)
_PORT = re.compile(r"\[|.*:\d+\Z")
_STANDS = re.compile(r"\*+|\$[A-Z_]\w*|\$?\{[^{}]*\}|<.*>|%s")
_ONLY_A_USER = re.compile(r"(?:.*ssh|sftp|rsync|git|abfss?|wasbs?|hdfs|s3a?|gs)://", re.IGNORECASE)
"""Where the name before `@` is that of an account or a container."""

_ISSUED = (
    # a webhook, whose path is its secret
    re.compile(
        r"(https?://(?:[^\s/\"']{0,60}hooks?\b[^\s/\"']{0,60}/(?:services/)?"
        r"|[^\s\"']{1,99}?/(?:web)?hook(?:s|b2)/))(?=[^\s\"'<>]{0,200}\d|[^\s\"'<>]{20})[^\s\"'<>]+"
    ),
    # user:password@host.domain, user:password@host:5432
    re.compile(
        r"(?<![\w/.@:+%-])((?!\d)[\w.+%-]{1,60}:)[^\s:@/\"'<>,{}]{3,100}"
        r"(?=@(?!sha\d)(?:localhost|[\w-]{1,60}(?:\.[\w-]|:\d)))"
    ),
    # jdbc:oracle:thin:user/password@host
    re.compile(r"(\bthin:\w{1,60}/)[^\s@]{1,100}(?=@)"),
    re.compile(
        r"((?<!\S)(?:-u|--user|--proxy-user)[ =][\"']?(?!\d)[^\s:\"'/]{1,60}:)(?!//)[^\s\"']{1,200}"
    ),
    re.compile(r"(\bsshpass\s+-p\s*)\S+"),
    re.compile(r"((?i:\b(?:key|token|password)(?: was)? (?:provided|given|used)): )[^\s,;]+"),
    re.compile(r"((?i:\bidentified by)\s+[\"'])[^\"'\n]{1,200}"),
    re.compile(r"(\b(?:Bearer|Basic)\s+)(?=[\w.~+/-]{0,60}\d|[\w.~+/-]{16})[\w.~+/-]{6,}=*"),
    # as their issuers write them: Hugging Face, GitHub, GitLab, OpenAI, Stripe, AWS, Slack, Google, JWT,
    # npm, PyPI, Docker, SendGrid, Databricks, Vault, Shopify, Replicate, Groq, NVIDIA and others
    re.compile(
        r"()\b(?:hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}|gh[oprsu]_\w{16,}|github_pat_\w{16,}"
        r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w.-]{8,}|sk-[\w-]{16,}|[prs]k_(?:live|test)_\w{6,}"
        r"|whsec_[\w+/=]{16,}|(?:AKIA|ASIA)[0-9A-Z]{12,}|xox[a-z](?:\.xox[a-z])?-[\w-]{8,}|xapp-[\w-]{10,}"
        r"|AIza[\w-]{20,}|ya29\.[\w.-]{10,}|GOCSPX-[\w-]{10,}|1//0[\w-]{20,}"
        r"|eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|dckr_[po]at_[\w-]{8,}"
        r"|SG\.[\w-]{10,}\.[\w-]{10,}|dapi[0-9a-f]{20,}|hv[sbr]\.[\w-]{12,}|shp(?:at|ca|pa|ss)_\w{16,}"
        r"|r8_\w{20,}|gsk_\w{20,}|nvapi-[\w-]{20,}|xai-[\w-]{20,}|pplx-\w{20,}|lsv2_[ps][tk]_\w{16,}"
        r"|wandb_v\d_\w{10,}|dop_v1_\w{16,}|AGE-SECRET-KEY-\w+|[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,})"
    ),
)  # fmt: skip

_RUN = re.compile(r"(?<![\w/.~+-])[\w+/-]{20,}+={0,2}(?!\.\w{1,6}\b)")
"""As long as a text may be random, and no part of a path nor the name of a file."""
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_APART = re.compile(r"[/+_-]+")
_NOT_RANDOM = re.compile(
    r"/|_Z|0x|[\d_+/-]*\Z|.*[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?:.*/)?[A-Z]?[a-z]{4}[^/]*/|.*/[A-Z]?[a-z]{4}"
)
"""A path, a mangled name of C++, an address, a number, a UUID, words with a slash between."""
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_DIGEST = vocabulary(
    "commit sha blake md crc hash hashes digest checksum checksums rev revision uuid guid fingerprint"
    " etag id ids tree blob parent version build image layer ref head tag trace span run integrity merge"
    " index base object snapshot snapshots container sum git branch checkout"
)
"""Before a number, in its line, that looks random but is known to all."""
_BEFORE_A_FILE = re.compile(r" [ *]\S|\t\S")


def without_issued(text: str) -> str:
    """The text without private keys, secret parts of URLs, and what issuers mark."""
    text = _PEM.sub(lambda block: _LINE.sub(HIDDEN, block[0]), text)
    if "://" in text:
        text = _URL.sub(_url, text)
    for pattern in _ISSUED:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def without_random(text: str) -> str:
    """The text without what looks as if it had been drawn at random, and is no known checksum."""
    return _RUN.sub(lambda run: HIDDEN if _drawn(run[0]) and not _digest(run) else run[0], text)


def _url(url: re.Match[str]) -> str:
    """A URL without what is before its host but the user; without that, too, where it stands alone."""
    scheme, rest = url["scheme"], url["rest"]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    info = authority.rpartition("@")[0]
    if not info and ":" in authority and not _PORT.match(authority):
        info = rest.rpartition("@")[0]  # with a slash in its password
    user, colon, password = info.partition(":")
    if password and password != "x-oauth-basic" and not _STANDS.fullmatch(password):
        password = HIDDEN
    elif not password or password == "x-oauth-basic":
        keep = not user or _STANDS.fullmatch(user) or _ONLY_A_USER.match(scheme)
        user = user if keep else HIDDEN
    return f"{scheme}{user}{colon}{password}{rest[len(info) :]}"


def _drawn(run: str) -> bool:
    """Whether a text looks as if it had been drawn at random.

    It is parted where letters turn into digits and small ones into capitals. The pieces of a random text
    are short, few are as long as a word, and digits come again and again. Of 20,290 names of 20 letters
    and more in torch, transformers and what they need, 12 look so; of texts of 24 drawn letters and
    digits, 9 of 10 do.
    """
    words = _APART.split(run.rstrip("="))
    bare = "".join(words)
    if (
        _NOT_RANDOM.match(run)
        or max(map(len, words)) < 12
        or len(bare) < 8 * len(words)
        or len(set(bare)) < 8
    ):
        return False
    if _HEX.fullmatch(bare):
        return len(bare) >= 32
    pieces = [len(piece) for piece in _PIECE.findall(bare)]
    size, mean = sum(pieces), sum(pieces) / max(1, len(pieces))
    of_words = sum(piece for piece in pieces if piece >= 4) / max(1, size)
    digits = len(re.findall(r"\d+", bare)) / len(bare)
    score = mean + 4 * of_words - 8 * digits
    return len(set(bare)) >= 8 and (
        score < 3 + min(len(bare), 120) / 60 or (mean < 2.8 and of_words < 0.4)
    )


def _digest(run: re.Match[str]) -> bool:
    """Whether a run is a checksum or an id: after a name that says so, or before the name of a file."""
    text, bare = run.string, run[0].strip("-=")
    line = text[max(0, text.rfind("\n", 0, run.start()) + 1, run.start() - 300) : run.start()]
    is_labelled = not _DIGEST.isdisjoint(parts(line)) or line.endswith("@")
    checksum = _HEX.fullmatch(bare.replace("-", "")) or bare.startswith(
        ("sha256-", "sha384-", "sha512-")
    )
    return bool(checksum and (bare[0] == "s" or is_labelled or _BEFORE_A_FILE.match(text, run.end())))
