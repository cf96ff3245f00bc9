"""What is taken out of texts, and what stays."""

from __future__ import annotations

import pytest

from helpers.model.redaction import redacted, redacted_words
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


def test_a_word_after_the_flag_that_names_it() -> None:
    command = ("train.py", "--token", "abc", "--password", "--lr", "3", "HF_TOKEN=abc")
    assert redacted_words(command) == (
        *("train.py", "--token", "***", "--password", "--lr", "3", "HF_TOKEN=***"),
    )


@pytest.mark.parametrize("part", ["-", "A_", "a", "&", "-a", "://", "eyJ", "sk-", "/:@"])
def test_a_hostile_text_ends_before_the_limit_of_every_test(part: str) -> None:
    assert redacted(part * (200_000 // len(part)))
