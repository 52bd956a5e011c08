"""The `brane` command parses its arguments, calls the library and prints the results."""


def main() -> None:
    """Run the command with the arguments of the process."""
    import sys
    import warnings

    from neural_brane.cli import terminal

    terminal.protect()
    from neural_brane.cli.app import app

    warnings.showwarning = terminal.show_warning
    try:
        app()
    except SystemExit as end:
        if (error := terminal.write_error(sys.stdout)) is None:
            raise
        print(f"error: cannot write to standard output ({error.strerror}); its end may be missing", file=sys.stderr)
        raise SystemExit(end.code or 1) from None
