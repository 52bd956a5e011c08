from __future__ import annotations

import hashlib
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from neural_brane.errors import DatasetError
from neural_brane.files.datasets import Dataset, File, _retrieve, digest, fetch

CONTENT = b"2 1\n0 1\n"
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
CHANGED = b"2 1\n1 0\n"


class Server(SimpleHTTPRequestHandler):
    """Serve files without logging."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def folders(tmp_path, monkeypatch) -> dict[str, Path]:
    """Return empty folders for the user's files and for the cache."""
    own, cache = tmp_path / "own", tmp_path / "cache"
    monkeypatch.setenv("NEURAL_BRANE_DATA", str(own))
    monkeypatch.setattr("pooch.os_cache", lambda project: cache / project)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return {"own": own / "tiny", "cache": cache / "neural-brane" / "tiny"}


@pytest.fixture
def site(tmp_path):
    """Start a web server on this machine; return its folder and its address."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def tiny(**file: str) -> tuple[Dataset, File]:
    entry = File(**({"role": "graph", "name": "g.txt", "hash": SHA256} | file))
    return Dataset("tiny", "two nodes", (entry,)), entry


def put(folder: Path, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "g.txt").write_bytes(content)
    return folder / "g.txt"


def test_own_files_come_before_the_cache(folders):
    cached = put(folders["cache"], CONTENT)
    assert fetch(*tiny()) == cached
    own = put(folders["own"], CONTENT)
    assert fetch(*tiny()) == own


def test_own_file_with_another_content_is_an_error(folders, site):
    folder, address = site
    (folder / "g.txt").write_bytes(CONTENT)
    own = put(folders["own"], CHANGED)
    with pytest.raises(DatasetError) as caught:
        fetch(*tiny(address=f"{address}/g.txt"))
    assert str(caught.value).startswith(f"{own}: ")
    assert all(word in str(caught.value) for word in (digest(own, SHA256), SHA256, "'tiny'", "remove"))


@pytest.mark.parametrize("damaged", [False, True])
def test_download(folders, site, damaged):
    folder, address = site
    (folder / "g.txt").write_bytes(CONTENT)
    if damaged:
        put(folders["cache"], CHANGED)
    path = fetch(*tiny(address=f"{address}/g.txt"))
    assert path == folders["cache"] / "g.txt"
    assert path.read_bytes() == CONTENT
    (folder / "g.txt").unlink()
    assert fetch(*tiny(address=f"{address}/g.txt")) == path


def test_download_of_a_member_of_an_archive(folders, site, tmp_path):
    folder, address = site
    with tarfile.open(folder / "all.tgz", "w:gz") as archive:
        archive.add(put(tmp_path, CONTENT), "tiny/graph")
    assert fetch(*tiny(address=f"{address}/all.tgz", member="tiny/graph")).read_bytes() == CONTENT
    (folders["cache"] / "g.txt").unlink()
    with pytest.raises(DatasetError, match=r"could not be downloaded from .*all\.tgz .*other"):
        fetch(*tiny(address=f"{address}/all.tgz", member="tiny/other"))
    assert list(folders["cache"].iterdir()) == []


@pytest.mark.parametrize("name", ["../g.txt", "/etc/passwd", "..", "a/../../g.txt", "", "a\\b"])
def test_a_name_that_leads_out_of_the_cache_is_refused(folders, name):
    with pytest.raises(DatasetError, match="name a dataset or its file"):
        fetch(*tiny(name=name))
    entry = File("graph", "g.txt", SHA256)
    with pytest.raises(DatasetError, match="name a dataset or its file"):
        fetch(Dataset(name, "two nodes", (entry,)), entry)


def test_a_member_of_an_archive_is_copied_and_never_extracted_and_its_size_is_bounded(folders, site, tmp_path):
    folder, address = site
    with tarfile.open(folder / "all.tgz", "w:gz") as archive:
        archive.add(put(tmp_path, CONTENT), "../../escaped")
    file = tiny(address=f"{address}/all.tgz", member="../../escaped")
    assert fetch(*file) == folders["cache"] / "g.txt"
    assert not list(tmp_path.rglob("escaped"))
    with pytest.raises(KeyError, match=r"8 bytes.*7"):
        _retrieve(file[1], tmp_path / "draft", largest=7)


def test_a_wrong_download_is_refused_and_leaves_nothing(folders, site):
    folder, address = site
    (folder / "g.txt").write_bytes(CHANGED)
    with pytest.raises(DatasetError, match=r"/g\.txt.*file"):
        fetch(*tiny(address=f"{address}/g.txt"))
    assert list(folders["cache"].iterdir()) == []


def test_git_blob_hashes(folders, site):
    folder, address = site
    (folder / "g.txt").write_bytes(b"hello\n")
    hello = "git-blob:ce013625030ba8dba906f756967f9e9ca394464a"  # computed by git hash-object
    assert fetch(*tiny(address=f"{address}/g.txt", hash=hello)).read_bytes() == b"hello\n"
    put(folders["own"], CONTENT)
    with pytest.raises(DatasetError, match=f"dataset 'tiny' expects {hello}"):
        fetch(*tiny(hash=hello))


def test_offline_the_error_says_which_file_to_put_where(folders, site, monkeypatch):
    _, address = site
    with pytest.raises(DatasetError) as caught:
        fetch(*tiny(address=f"{address}/g.txt"))
    message = str(caught.value)
    assert message.startswith(f"dataset 'tiny' needs g.txt ({SHA256}), which is not here and could not be ")
    assert f"downloaded from {address}/g.txt (HTTPError: 404" in message
    assert message.endswith(f"; put it in {folders['own']}")
    monkeypatch.delenv("NEURAL_BRANE_DATA")
    with pytest.raises(DatasetError) as caught:
        fetch(*tiny())
    assert str(caught.value) == (
        f"dataset 'tiny' needs g.txt ({SHA256}), which is not here and has no public address; put it in "
        f"{folders['cache']}, or set NEURAL_BRANE_DATA to a folder that has tiny/g.txt"
    )
