"""The page of the comparison is what its data says, for every peer, and README says no more."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCHES = str(ROOT / "benches")

# Other programs there have the names of packages that tests start.
sys.path.append(BENCHES)
from comparison.faults import FAULTS  # noqa: E402
from comparison.page import claims, render  # noqa: E402
from comparison.peers import PEERS  # noqa: E402
from comparison.sizes import WHOLE  # noqa: E402

sys.path.remove(BENCHES)

DATA = json.loads((ROOT / "docs/comparison.json").read_text("utf-8"))
PAGE = (ROOT / "docs/comparison.md").read_text("utf-8")
FULL = [peer for peer in PEERS if peer.has_faults]


def section(title):
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_page_is_what_its_data_says():
    assert render(DATA) == PAGE


def test_all_peers_were_measured_in_one_run():
    assert list(DATA["peers"]) == [peer.name for peer in PEERS]
    assert ("This run is a short one" in PAGE) == (DATA["sizes"] != WHOLE.to_json())
    for peer in PEERS:
        for kind, sizes in (("loop", "turns"), ("memory", "agents")):
            assert list(DATA["peers"][peer.name][kind]) == [
                str(one) for one in DATA["sizes"][sizes]
            ]


@pytest.mark.parametrize(
    ("title", "peers"),
    [
        ("The peers", FULL),
        ("CPU a step", PEERS),
        ("Memory of many agents", PEERS),
        ("Durable turns", FULL),
        ("Import and size", FULL),
        ("Faults of a model", FULL),
    ],
)
def test_every_peer_is_in_every_table(title, peers):
    text = section(title)
    assert [peer.title for peer in peers if peer.title not in text] == []


def test_every_fault_was_tried_with_every_peer():
    assert len(FAULTS) == 20
    names = [fault.name for fault in FAULTS]
    assert {peer.name: list(DATA["peers"][peer.name]["faults"]) for peer in FULL} == {
        peer.name: names for peer in FULL
    }


def test_the_data_has_the_pinned_versions():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    pins = dict(
        re.sub(r"\[.*?\]", "", line).split("==")
        for line in settings["dependency-groups"]["compare"]
    )
    for peer in FULL:
        versions = {
            name.lower(): version
            for name, version in DATA["peers"][peer.name]["installed"]["versions"].items()
        }
        for name in (*peer.needs, *peer.keeps):
            assert versions[name] == pins[name], f"{peer.name}: {name}"


def test_readme_says_what_the_data_says():
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert [claim for claim in claims(DATA) if claim not in readme] == []
    links = re.findall(r"\]\(docs/comparison\.md#", readme)
    assert len(links) == len(claims(DATA))


def test_nothing_of_the_machine_is_in_the_data():
    text = json.dumps(DATA)
    assert re.findall(r"/(?:home|root|tmp|work|usr)/[\w./-]*", text) == []
