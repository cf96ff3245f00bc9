"""Which names say that their values are secrets: one rule for variables, arguments and texts.

A name is split into its parts at everything but letters and digits, and where its case changes.

- A part such as `password` or `credentials`, and two parts such as `api key` or `access token`, make a
  secret of any text, unless the last part says that the text only describes it (`password_file`).
- `token`, `key`, `auth`, `pass`, `pw` and their like mean much else in a program that trains: they count
  only as the last part. A `token` of a vocabulary (`pad_token`, or whatever is `<pad>`) is none, nor is
  a `pass` of a computation (`forward_pass`); `key` needs a part before it that names a service, or a
  variable of the environment, or a value that no person would choose.
- A number or a truth value is a secret only where the last part says so; None and an empty text never.
"""

import re
from typing import List

# Patterns are compiled when a name is first asked about: every process of a job imports this file.
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_GLUED = (
    r"(.*?)(pass(?:words?|wd|phrase|code)|secrets?|credentials?|pwd|auth|token"
    r"|(?:api|access|secret|private)keys?|(?:(?<=ssh)|(?<=db)|(?<=user)|(?<=smtp)|(?<=root))pass)"
)


def vocabulary(text: str) -> "frozenset[str]":
    """The words of a text, as a set."""
    return frozenset(text.split())


_SECRET = vocabulary(
    "password passwords passwd passphrase passcode secret secrets credential credentials"
    " authorization apikey apikeys accesskey accesskeys secretkey secretkeys privatekey privatekeys"
)
_AT_THE_END = vocabulary("pw pwd auth cred creds cookie cookies jwt bearer otp totp")
_ISSUED = vocabulary("api auth access refresh bearer session security secret oauth bot sas csrf jwt")
"""Before `token`: one that a service has issued."""
_OPENS = vocabulary(
    "api access private secret encryption encrypt signing sign ssh ssl tls rsa aes hmac fernet"
    " account storage subscription consumer deploy auth session service shared license app admin"
    " master client webhook wandb openai anthropic kaggle comet hf huggingface aws azure gcp google"
    " s3 neptune mlflow clearml ngc gemini cohere mistral groq datadog dd sentry stripe github gitlab"
    " slack"
)
"""Before `key`: what it opens, or who has issued it."""
_LOOKED_UP = vocabulary(
    "primary foreign public sort sorted cache dict group store partition row hash index lookup hot"
    " short map state log metric object monitor idempotency rng prng random query host num kv item"
    " field"
)
"""Before `KEY`: something in which one looks up."""
_OF_TEXT = vocabulary(
    "eos bos pad unk cls sep mask special image video audio speech vision text max min num n total"
    " next prev previous last first stop start begin end decoder encoder per new cur current input"
    " output target source query prefix suffix eot eod eom sot class drop draft latent extra forced"
    " suppress bad word sub each every generated prompt completion pre de by"
)
"""Before `token`: a piece of text."""
_OF_WORK = vocabulary(
    "forward backward first second third last next prev single multi one two each per num n max min"
    " full warmup eval train test val dry by render high low all model compile compiler optimize"
    " optimizer fusion post pre opt"
)
"""Before `pass`: work that is gone through."""
_VALUE = vocabulary(
    "value prod production dev staging old new b64 base64 encoded plain plaintext raw default write"
    " read admin header"
)
"""After the name of a secret: it is one still."""
_ABOUT = vocabulary(
    "file filename path dir folder name names type url uri endpoint host length len size max min"
    " policy manager provider backend expiry expires ttl timeout count num field fields prompt env"
    " var required enabled version scheme mode arn ref regex method user username"
)
"""After the name of a secret: something that is said of it."""
ASKS = vocabulary("is has use no with without need needs require requires enable show")
"""Before the name of a secret: a question, whose answer is a truth value."""

_STEMS = vocabulary("pass pw secret cred auth key token cookie jwt bearer otp _pat")
"""One of these is in each word of a secret: most names need no closer look, and a look at a job none."""

_NOTHING = vocabulary("none null nil undefined ~ not unset missing found required expired")
_TRUTH = vocabulary("true false yes no on off")
_NUMBERED = r"[A-Za-z_]+\d+"
_IDENTIFIER = r"[A-Za-z_/]+"
_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_OF_VOCABULARY = r"(?s:<.*>|\[.*\]|\|.*\||\W*)"


def parts(name: str) -> List[str]:
    """The words of a name, in small letters: `WANDB_API_KEY`, `wandb.apiKey` -> wandb, api, key."""
    words: List[str] = []
    for part in re.findall(_PART, name):
        glued = re.fullmatch(_GLUED, part.lower())
        words += [word for word in (glued.groups() if glued else (part.lower(),)) if word]
    return words


def is_secret(name: str, value: object) -> bool:
    """Whether the value of a variable, argument or field is a secret, as its name and its kind say.

    Args:
        value: a text that reads like a number, a truth value or None counts as that.
    """
    lowered = name.lower()
    if value is None or not any(stem in lowered for stem in _STEMS):
        return False
    words = parts(name)
    text = str(value).strip()
    if not text or text.lower() in _NOTHING:
        return False
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _VALUE):
        words.pop()
    if text.lower() in _TRUTH or re.fullmatch(_NUMBER, text):
        is_question = text.lower() in _TRUTH and words[0] in ASKS
        return not is_question and _ends(words, name, text)
    return _ends(words, name, text) or (_anywhere(words) and words[-1] not in _ABOUT)


def _anywhere(words: List[str]) -> bool:
    pairs = set(zip(words, words[1:]))
    return not _SECRET.isdisjoint(words) or any(
        (second in ("token", "tokens") and first in _ISSUED)
        or (second in ("key", "keys") and first in ("api", "access", "private", "secret", "account"))
        for first, second in pairs
    )


def _ends(words: List[str], name: str, text: str) -> bool:
    """Whether the last part, with those before it, is that of a secret."""
    last = words[-1]
    if last == "pat":  # a personal access token; in small letters a pattern
        return name.isupper() and len(words) > 1
    if last in _AT_THE_END:
        return last != "pwd" or not text.startswith(("/", "~"))  # the working directory
    if last in ("token", "key", "pass", "keys", "tokens"):
        return _weak(last, words[:-1], name, text)
    return last in _SECRET


def _weak(last: str, before: List[str], name: str, text: str) -> bool:
    if last == "pass":
        return _OF_WORK.isdisjoint(before)
    if last == "token":
        issued = not _ISSUED.isdisjoint(before)
        return issued or (_OF_TEXT.isdisjoint(before) and not re.fullmatch(_OF_VOCABULARY, text))
    if not before or last == "tokens":
        return _anywhere([*before[-1:], last])
    if before[-1] in _OPENS:
        return True
    if last == "keys" or before[-1] in _LOOKED_UP:
        return False
    if name.isupper():
        return not re.fullmatch(_IDENTIFIER, text)
    digits = sum(map(str.isdigit, text))
    drawn = text.isalnum() and len(text) >= 8 and 3 <= digits < len(text)
    return drawn and not re.fullmatch(_NUMBERED, text)
