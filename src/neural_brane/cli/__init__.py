"""The `brane` command: parse, call the library, print."""


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
    except SystemExit as leaving:
        if (failure := terminal.failure(sys.stdout)) is None:
            raise
        print(f"error: standard output could not be written ({failure.strerror})", file=sys.stderr)
        raise SystemExit(leaving.code or 1) from None
