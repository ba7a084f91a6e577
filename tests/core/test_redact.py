"""Masking of secrets, and what must stay as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing import seconds

from mcp_context_server.core.redact import SHAPES, redact, telling_lines

SECRETS = {
    "AKIA" + "A1" * 8: "AWS key id",
    "ASIA" + "A1" * 8: "AWS key id",
    "ghp_" + "a1" * 18: "GitHub token",
    "ghs_" + "a1" * 18: "GitHub token",
    "github_pat_" + "a1" * 20: "GitHub token",
    "glpat-" + "a1" * 10: "GitLab token",
    "xoxb-" + "12345678-abcdef": "Slack token",
    "https://hooks.slack.com/services/T000/B000/XXXX"[8:]: "Slack webhook",
    "sk_live_" + "a1" * 12: "Stripe key",
    "sk-ant-api03-" + "aB1_" * 20: "API key",
    "sk-" + "aB1" * 16: "API key",
    "gsk_" + "aB1" * 16: "API key",
    "AIza" + "aB1_-" * 7: "Google key",
    "npm_" + "a" * 36: "package token",
    "hf_" + "a" * 34: "Hugging Face token",
    "hvs." + "a1" * 12: "cloud token",
    "12345678:AA" + "b" * 33: "bot token",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl": "web token",
}


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize(("secret", "kind"), SECRETS.items())
def test_a_key_is_masked_wherever_it_stands(secret, kind):
    assert redact(f"export KEY {secret}\nnext") == f"export KEY [masked {kind}]\nnext"


@pytest.mark.parametrize("secret", SECRETS)
def test_a_key_inside_quotes_and_json_is_masked(secret):
    assert secret not in redact(f'{{"a": "{secret}", "b": [\'{secret}\']}}')


def test_a_private_key_is_masked_whole_cut_off_or_escaped():
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert redact(f"a\n{begin}\nMIIE+/ab=\n{end}\nb") == "a\n[masked private key]\nb"
    assert redact(f"a {begin}\\nMIIEab\\n{end} b") == "a [masked private key] b"
    assert redact(f"a\n{begin}\nMIIEabcd") == "a\n[masked private key]"
    assert redact(f"says:\nMIIEabcd\n{end}\nb") == "says:[masked private key]\nb"


PLACED = pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgres://u:p4ss@host/db", "postgres://u:[masked password]@host/db"),
        ("Authorization: Bearer x", "Authorization: Bearer [masked authorization]"),
        ("authorization: Basic dXNlcjpwdw==", "authorization: Basic [masked authorization]"),
        ("Bearer abcdef123456", "Bearer [masked bearer token]"),
        ("Bearer x", "Bearer [masked bearer token]"),
        ("password = 'hunter22'", "password = [masked secret]"),
        ('{"client_secret": "ab cd"}', '{"client_secret": "ab cd"}'),
        ("GITHUB_TOKEN=abc123def456", "GITHUB_TOKEN=[masked secret]"),
        ("mysql --password s3cretpw", "mysql --password [masked secret]"),
        ("GET /?token=abcdefgh&x=1", "GET /?token=[masked secret]&x=1"),
        ("GET /?sig=abcdefgh&x=1", "GET /?sig=[masked secret]&x=1"),
        ("password:\n  hunter22x", "password:\n  [masked secret]"),
    ],
)


@PLACED
def test_a_secret_is_told_by_its_place(text, masked):
    assert redact(text) == masked


@PLACED
def test_the_lines_with_such_a_place_are_found_without_looking_at_the_others(text, masked):
    found = telling_lines(f"the first line\n{text}\nand\nanother")
    assert "first" not in found
    assert "another" not in found
    assert redact(found).startswith(masked) or masked == text


def test_what_only_looks_like_a_place_is_passed_over():
    assert telling_lines("a key is no value\nand https://host/path is no secret\n") == ""


def test_a_text_whose_letters_change_their_number_is_looked_at_whole():
    assert telling_lines("İ\nplain") == "İ\nplain"


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f9f5613f9f5613f9f5613f9f5613f9f561aaaa",
        "id 64eee6c9-8269-4c1e-bfa4-381eafaf893d",
        "max_tokens=4096, output_tokens: 12345678",
        "token = getToken()",
        "api_key=settings.api_key",
        "password: str",
        "password = os.environ['PASSWORD']",
        "the bearer token is missing",
        "pwd=/home/alex/project1",
        "paginationControllerFactoryBeanConfiguration",
        "sk-learn-pipeline-with-a-long-name",
        "https://example.org:8080/a@b",
        '"password": "changeme"',
        "toolu_01HqDbhhUmn5C5BQ8mKPr6Pc",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text):
    assert redact(text) == text


def test_a_switch_turns_masking_off():
    assert redact("ghp_" + "a" * 36, enabled=False) == "ghp_" + "a" * 36


pieces = st.lists(
    st.sampled_from(
        [*SECRETS, "Bearer ", "password=", "://a:b@", "\n", " ", "x1", "日本", "\ud800"]
    )
)


@given(pieces.map(" ".join))
def test_masking_twice_changes_nothing_more(text):
    assert redact(redact(text)) == redact(text)


@pytest.mark.timing
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "token=",
        "://",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "eyJaaaaaaaaa.",
        "bearer ",
        "password: 'aaaaaa",
        "sk-ant-",
    ],
)
def test_the_time_it_takes_grows_with_the_text_and_no_faster(piece):
    short, long = (piece * (chars // len(piece)) for chars in (10_000, 80_000))
    assert seconds(lambda: redact(long)) < 8 * 6 * max(seconds(lambda: redact(short)), 0.000_5)


def test_every_shape_is_named():
    assert all(shape.kind and shape.triggers for shape in SHAPES)


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize("gap", [" […120 characters left out…] rest", "\n[… 9 more", "…"])
@pytest.mark.parametrize("head", ["ghp_a1B2c3D4", "sk-ant-api03-a1B2", "AKIA12345", "hf_a1B2c3"])
def test_a_key_is_masked_though_a_preview_left_its_end_out(head, gap):
    assert redact(f"key is {head}{gap}") == f"key is [masked key]{gap}"
    assert redact(f"{head} stands whole") == f"{head} stands whole"
