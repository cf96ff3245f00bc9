"""What is taken out of texts, and what stays.

In `secrets.txt` and `sources_hidden.txt` each line has a secret, which stands where `§` is; `\\n` ends a
line of several. In `innocent.txt` and `sources_kept.txt` no line has one.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.beacon.secret_names import is_secret
from helpers.model.redaction import redacted, redacted_source, redacted_value, redacted_words
from helpers.model.wording import printable

TAKEN = [
    ("train.py --token abc --lr 3", "train.py --token *** --lr 3"),
    ("train.py --hf-token=abc", "train.py --hf-token=***"),
    ("train.py --api_key 'a b' last", "train.py --api_key *** last"),
    ("WANDB_API_KEY=abc python train.py", "WANDB_API_KEY=*** python train.py"),
    ("export AWS_SECRET=abc", "export AWS_SECRET=***"),
    ("git clone https://me:abc@host/x", "git clone https://me:***@host/x"),
    ("GET https://host/x?token=abc&page=2", "GET https://host/x?token=***&page=2"),
    ("Authorization: Bearer abc.def-g", "Authorization: Bearer ***"),
    ("logged in as hf_abcdefghijklmnopqrstuvwxyz", "logged in as ***"),
    ('login(api_key="abc", user="me")', 'login(api_key="***", user="me")'),
    ("{'password': 'abc', 'lr': '1'}", "{'password': '***', 'lr': '1'}"),
    ('if token == "abc":', 'if token == "***":'),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "***"),
]
KEPT = [
    "train.py --tokenizer gpt2 --max-tokens 512",
    "python train.py --keyboard=de",
    "sorted(ranks, key=len)",
    "default_pg/0//gloo//0/1",
    "http://127.0.0.1:29500/store",
    "KeyError: 'token'",
    'tokenizer = "gpt2"',
    "token = next(tokens)",
    "--password --verbose",
]


@pytest.mark.parametrize(("text", "expected"), TAKEN)
def test_what_may_be_a_secret_goes(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert printable(text) == expected


@pytest.mark.parametrize("text", KEPT)
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == text


VALUES = ("zq9", "hunter2", "Zx81kkQ7p")


def texts(name: str) -> list[str]:
    found = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n  ", "\n  ").replace("]\\n", "]\n") for line in found]


@pytest.mark.parametrize("shape", texts("secrets.txt"))
@pytest.mark.parametrize("value", VALUES)
def test_no_shape_of_a_secret_passes(shape: str, value: str) -> None:
    shown = redacted(shape.replace("§", value))
    assert value not in shown
    assert redacted(shown) == shown


@pytest.mark.parametrize("text", texts("innocent.txt"))
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redacted(text) == text
    assert redacted_source(text) == text


@pytest.mark.parametrize("line", texts("sources_kept.txt"))
def test_a_source_without_a_secret_stays(line: str) -> None:
    assert redacted_source(line) == line


@pytest.mark.parametrize("shape", texts("sources_hidden.txt"))
@pytest.mark.parametrize("value", VALUES[:2])
def test_a_literal_of_a_source_goes(shape: str, value: str) -> None:
    shown = redacted_source(shape.replace("§", value))
    assert value not in shown
    assert redacted_source(shown) == shown


def test_a_source_stays_python_and_as_long() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"
    program = f'pw = 4711\nKEY = """{key}"""\nlr = 0.1\n'
    shown = redacted_source(program)
    assert ast.parse(shown)
    assert shown.count("\n") == program.count("\n")
    assert "4711" not in shown and "abc" not in shown and "lr = 0.1" in shown


ISSUED = [
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "glpat-abcdefghijklmnopqrst",
    "sk-abcdefghijklmnopqrstuvwxyz",
    "sk-proj-abc_DEF-ghi0123456789",
    "sk_live_abcdefgh",
    "rk_live_abcdefgh",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefghijkl",
    "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNA",
    "dckr_pat_abcdefghijklmnopqrstuvwxyz0",
    "SG.abcdefghijklmnopqrst.uvwxyzABCDEFGHIJKLMN",
    "916c466aaf4bcb9ab43e0e7b1f5d1e9ce2f09be1",
    "kJ8sD2fG7hQ9wE4rT6yU1iO3",
    "bT7+xQ2/9fLkZ0vM3sR8wY1nC6hJ5pD4gA0eU7iK",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
]  # fmt: skip


@pytest.mark.parametrize("text", ISSUED)
@pytest.mark.parametrize("around", ["{}", "logged in as {}", "login({!r})", "x ({}), y", "got {}."])
def test_what_is_recognisable_or_looks_random_goes(text: str, around: str) -> None:
    assert text not in redacted(around.format(text))
    assert text not in redacted_source(around.format(text))


PEM = """-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEAr7Xz0Pq3k9vJ2mN5sT8wY1bC4dF6gH7jK0lQ3rU5vX8zA1e
-----END RSA PRIVATE KEY-----"""


@pytest.mark.parametrize(
    "text", [PEM, PEM.replace("\n", "\\n"), repr(PEM), PEM[:90], PEM.split("\n")[1]]
)
def test_a_private_key_goes_whole_or_in_parts(text: str) -> None:
    assert "MIIE" not in redacted(text)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("pw", 4711, True),
        ("db_password", 12345, True),
        ("password_length", 8, False),
        ("num_tokens", 5, False),
        ("max_token", "eos", False),
        ("token", "<pad>", False),
        ("token", "abc", True),
        ("api_key", None, False),
        ("use_auth_token", True, False),
        ("password", True, True),
        ("self.args.apiKey", "x", True),
        ("dbPassword", "x", True),
        ("secretary", "x", False),
        ("ACME_KEY", "x1", True),
        ("IMAGE_KEY", "image", False),
        ("split_key", "train2017", False),
        ("HF_TOKEN", "unset", False),
        ("cache_key", "x", False),
        ("acme_key", "Zx81kkQ7", True),
        ("PWD", "/home/me", False),
        ("PWD", "abc", True),
    ],
)
def test_a_name_and_the_kind_of_its_value_say_whether_it_is_a_secret(
    name: str, value: object, secret: bool
) -> None:
    assert is_secret(name, value) is secret


MODELS = """
    GPT2 Llama Bert T5 Mistral Mixtral Qwen2 Gemma Phi Falcon Bloom OPT Whisper ViT CLIP Wav2Vec2
    DeepseekV3 Roberta Bart GPTNeoX Mpt XLNet Electra
"""


def arguments() -> Iterator[tuple[str, object]]:
    """Names that a program that trains has, each with values of every kind."""
    import transformers
    from lightning import Trainer
    from torch.utils.data import DataLoader

    typical: dict[str, object] = {}
    for function in (DataLoader, Trainer):
        typical.update(dict.fromkeys(inspect.signature(function).parameters))
    typical.update(dict.fromkeys(one.name for one in dataclasses.fields(transformers.TrainingArguments)))
    for model in MODELS.split():
        typical.update(getattr(transformers, f"{model}Config")().to_dict())
    assert len(typical) > 350
    for name, value in typical.items():
        yield name, value
        if name != "hub_token":  # a secret, where it is not None
            yield from ((name, other) for other in (5, 0.5, True, None, "short"))


@pytest.mark.nightly  # seven seconds for some 400 names in all their forms
def test_no_argument_of_a_program_that_trains_is_a_secret() -> None:
    for name, value in arguments():
        assert not is_secret(name, value), name
        for form in (
            "{0}={1}",
            "{0}={1!r}",
            "{0} = {1!r}",
            "--{0} {1}",
            "--{0}={1}",
            '"{0}": {1!r}',
            "{0}: {1}",
        ):
            text = form.format(name, value)
            assert redacted(text) == text


WORDS = """
    token password api_key is key value f x1 hunter2 *** Bearer
    = : -- ' \" \\ ( ) [ ] { } , ; & ? :// @ /
    # < > $ +
"""


@given(
    st.lists(
        st.one_of(st.sampled_from([*WORDS.split(), " ", "\n", "'''"]), st.text(max_size=3)), max_size=25
    ).map("".join)
)
def test_what_has_been_redacted_once_stays(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)
    assert redacted_source(text).count("\n") == text.count("\n")


def test_a_word_after_the_flag_that_names_it() -> None:
    command = ["train.py", "--token", "abc", "--password", "--lr", "3", "HF_TOKEN=abc", "-u", "me:abc"]
    hidden = ["train.py", "--token", "***", "--password", "--lr", "3", "HF_TOKEN=***", "-u", "me:***"]
    assert redacted_words(command) == tuple(hidden)
    assert redacted_words(["--pw=a b"]) == ("--pw=***",)


WORDS_OF_COMMANDS = [
    (("--revision", "916c466aaf4bcb9ab43e0e7b1f5d1e9ce2f09be1"), None),
    (("--monitor", "val_loss"), None),
    (("token=${oc.env:HF}",), None),
    (("db.password=a b9x7",), ("db.password=***",)),
    (("-genv", "HF_TOKEN", "hunter2"), ("-genv", "HF_TOKEN", "***")),
    (("git", "config", "user.password", "hunter2"), ("git", "config", "user.password", "***")),
    (("--token", "$ecret1"), ("--token", "***")),
]


@pytest.mark.parametrize(("words", "shown"), WORDS_OF_COMMANDS)
def test_a_word_of_a_command_may_say_what_the_next_is(
    words: tuple[str, ...], shown: tuple[str, ...] | None
) -> None:
    assert redacted_words(words) == (shown or words)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("commit", "916c466aaf4bcb9ab43e0e7b1f5d1e9ce2f09be1"), ("x", "***"), ("api_key", "***")],
)
def test_a_value_is_what_its_name_says(name: str, shown: str) -> None:
    assert redacted_value(name, "916c466aaf4bcb9ab43e0e7b1f5d1e9ce2f09be1") == shown
