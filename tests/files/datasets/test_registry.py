import re

import pytest

from neural_brane.files.datasets import registry

NAMES = [
    "citeseer",
    "caltech36",
    "reed98",
    "arnetminer",
    "arnetminer-15753",
    "cora",
    "wiki",
    "acm",
    "haverford76",
    "debian-packages",
    "stdlib",
]


def test_every_dataset_is_listed():
    assert list(registry()) == NAMES


@pytest.mark.parametrize("name", registry())
def test_entries_are_complete(name):
    dataset = registry()[name]
    assert dataset.about
    assert [file.role for file in dataset.files] in (
        ["graph"],
        ["graph", "attributes"],
        ["graph", "attributes", "labels"],
    )
    for file in dataset.files:
        assert re.fullmatch(r"sha256:[0-9a-f]{64}|git-blob:[0-9a-f]{40}|", file.hash)
        assert re.fullmatch(r"https://\S+|", file.address)
        assert not file.address or file.hash
        assert file.address.endswith((file.name, ".tgz")) or not file.address
