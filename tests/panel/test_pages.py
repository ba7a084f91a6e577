"""The pages as files: whole in themselves, and safe whatever a conversation says."""

import hashlib
import json
import re
from base64 import b64encode

import pytest
from click.testing import CliRunner
from mcp.server import apps as sdk
from panel.recorded import HOSTILE, KEY, hostile, session

from mcp_context_server.cli import main
from mcp_context_server.errors import InvalidInput
from mcp_context_server.inspection.reading import Inspection, inspect
from mcp_context_server.panel import extension as apps
from mcp_context_server.panel import page, page_policy, report
from mcp_context_server.panel.files import write_report
from mcp_context_server.panel.pages import inert


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "11111111-2222.jsonl"
    path.write_bytes(hostile())
    return path


def data_of(html: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.mark.requirement("HOST-2")
def test_the_report_is_written_where_it_is_asked_for_and_carries_the_inspection(recorded, tmp_path):
    out = tmp_path / "report.html"
    done = CliRunner().invoke(main, ["inspect", str(recorded), "--html", str(out)])
    assert (done.exit_code, done.stdout) == (0, "")
    html = out.read_text(encoding="utf-8")
    assert Inspection.model_validate(data_of(html)) == inspect(recorded)


def test_a_page_names_nothing_to_load(recorded):
    for html in (page(), report(inspect(recorded))):
        without_data = re.sub(r'id="data">.*?</script>', "", html, flags=re.DOTALL)
        assert set(re.findall(r"https?://[^\s\"'`]+", without_data)) == {
            "http://www.w3.org/2000/svg"
        }
        assert re.findall(r"<link|@import|url\(|\bsrc=|<iframe|<base", without_data) == []


@pytest.mark.requirement("SAFE-1")
def test_nothing_in_a_conversation_can_leave_the_place_of_the_data(recorded):
    html = report(inspect(recorded))
    assert HOSTILE not in html
    assert html.count("</script>") == 2
    assert any(HOSTILE in part["file"] for part in data_of(html)["parts"])


@pytest.mark.requirement("SAFE-2")
def test_no_secret_stands_in_a_report(recorded):
    html = report(inspect(recorded))
    assert KEY not in html
    assert KEY in recorded.read_text(encoding="utf-8")


@pytest.mark.requirement("SAFE-2")
def test_the_switch_turns_masking_off(recorded):
    unmasked = {"MCP_CONTEXT_MASK_SECRETS": "false"}
    for environ, shows in (({}, False), (unmasked, True)):
        done = CliRunner().invoke(main, ["inspect", str(recorded), "--json"], env=environ)
        assert (KEY in done.stdout) is shows


def test_names_in_braces_are_not_filled_in_again():
    told = {"a": "{{script}} </script> & \u2028"}
    assert json.loads(inert(told)) == told
    assert not set("<>&\u2028") & set(inert(told))


def test_the_policy_lets_only_the_pages_own_script_and_style_run():
    script = re.search(r"<script>(.*)</script>", page(), re.DOTALL)[1]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page_policy()
    assert "default-src 'none'" in page_policy()


def test_a_report_that_cannot_be_written_leaves_what_was_there(recorded, tmp_path):
    with pytest.raises(InvalidInput, match="Name another file"):
        write_report(inspect(recorded), tmp_path / "nowhere" / "report.html")
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(InvalidInput, match="taken"):
        write_report(inspect(recorded), taken)
    assert sorted(path.name for path in tmp_path.iterdir()) == [recorded.name, "taken"]


def test_the_extension_is_the_one_that_the_sdk_knows():
    assert (apps.Apps.identifier, apps.APP_MIME_TYPE) == (sdk.EXTENSION_ID, sdk.APP_MIME_TYPE)


def test_a_conversation_without_usage_or_messages_has_a_report_too(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_bytes(session().split(b"\n")[0] + b"\n")
    assert data_of(report(inspect(path)))["growth"] == []
