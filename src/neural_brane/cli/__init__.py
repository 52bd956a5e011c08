"""The `brane` command: parse, call the library, print."""


def main() -> None:
    """Run the command with the arguments of the process."""
    from neural_brane.cli.app import app

    app()
