from neural_brane.cli.terminal import show_table


def test_a_table_in_a_pipe_is_not_cut(capsys):
    show_table(("name", "nodes", "about"), [("cora", "2,708", "long " * 60)], title="graphs", right=("nodes",))
    title, heading, _, row = (line.split() for line in capsys.readouterr().out.splitlines() if line.split())
    assert title == ["graphs"]
    assert heading == ["name", "nodes", "about"]
    assert row == ["cora", "2,708", *["long"] * 60]


def test_brackets_are_printed_and_not_taken_for_markup(capsys):
    show_table(("a", "b"), [("[bold]x", "[y]")])
    assert "[bold]x" in (out := capsys.readouterr().out)
    assert "[y]" in out
