import pytest

from neural_brane.errors import GraphError
from neural_brane.files.storage import atomic, check_target, check_writable


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


def test_a_target_in_a_folder_that_does_not_exist_is_refused_with_the_command_that_makes_it(tmp_path):
    path = tmp_path / "a b" / "g.npz"
    with pytest.raises(GraphError, match=f"mkdir -p '{tmp_path}/a b'"):
        check_target(str(path), (".npz",), ".npz", GraphError)
    assert list(tmp_path.iterdir()) == []
    path.parent.mkdir()
    assert check_target(str(path), (".npz",), ".npz", GraphError) == path


def test_only_the_last_folder_of_an_output_is_made(tmp_path):
    check_writable(tmp_path / "new", GraphError, folder=True)
    with pytest.raises(GraphError, match="mkdir -p"):
        check_writable(tmp_path / "new" / "newer", GraphError, folder=True)
    (tmp_path / "file").touch()
    with pytest.raises(GraphError, match="file' is not a folder"):
        check_writable(tmp_path / "file", GraphError, folder=True)
    with pytest.raises(GraphError, match="File name too long"):
        check_writable(tmp_path / ("x" * 300), GraphError)
