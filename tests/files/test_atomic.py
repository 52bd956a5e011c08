import pytest

from neural_brane.errors import GraphError
from neural_brane.files.storage import atomic, check_target


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write_half() -> None:
        with atomic(target) as draft:
            assert draft.suffix == ".txt"
            draft.write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "old"
    with atomic(target) as draft:
        draft.write_text("new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_folders_that_are_missing_are_made(tmp_path):
    with atomic(tmp_path / "new" / "newer" / "file.txt") as draft:
        draft.write_text("all")
    assert (tmp_path / "new" / "newer" / "file.txt").read_text() == "all"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("g.csv", r"g\.csv: .*format.*\.npz or \.txt"),
        ("file/g.npz", r"file.*folder"),
        ("folder.npz", r"folder\.npz: .*folder.*file"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_any_work(name, message, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(GraphError, match=message):
        check_target(tmp_path / name, (".npz", ".txt"), ".npz or .txt", GraphError)


def test_a_target_in_a_folder_that_does_not_exist_yet_is_fine_and_nothing_is_made(tmp_path):
    path = tmp_path / "new" / "g.npz"
    assert check_target(str(path), (".npz",), ".npz", GraphError) == path
    assert list(tmp_path.iterdir()) == []
