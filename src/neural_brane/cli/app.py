"""Define the `brane` application: its help, its commands, and how it prints errors."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from neural_brane.cli import distributed
from neural_brane.cli.convert import convert, shard, split_edges
from neural_brane.cli.embed import embed, estimate, transform, update
from neural_brane.cli.evaluate import evaluate
from neural_brane.cli.experiments import compare, reproduce, tune
from neural_brane.cli.explore import demo, explore
from neural_brane.cli.info import datasets, formats, info, inspect, methods
from neural_brane.cli.insight import cluster, explain, nearest, suggest
from neural_brane.cli.terminal import LOG, TYPED, echo, end_log, exit_stopped, signals_as_errors
from neural_brane.errors import BraneError, ParameterError, printable, shorten

HELP = """
Learn one vector per node of a graph, from its links and its attributes.

\b
[bold]Start here[/bold]
  brane demo                                   try it on a small graph
  brane embed stdlib -o vectors.npz            learn vectors of a dataset
  brane evaluate vectors.npz --labels stdlib   score them
  brane nearest vectors.npz json               list similar nodes
  brane explore vectors.npz --graph stdlib     see a map in the browser

\b
[bold]Your own graph[/bold]
  brane formats                                list the formats of files
  brane inspect edges.csv --nodes people.csv   check how yours are read
  brane embed edges.csv --nodes people.csv -o vectors.parquet
"""


class BraneGroup(TyperGroup):
    """A group of commands that prints an error of the user as one line on stderr and exits with code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with signals_as_errors():
                return super().invoke(ctx)
        except BraneError as error:
            fail(str(error))
        except Warning as warning:
            fail(f"{warning} (it is an error because of PYTHONWARNINGS or -W error)")
        except (BrokenPipeError, typer.Exit):
            raise
        except OSError as error:
            from neural_brane.files.storage import NO_ROOM

            advice = "; make room on this disk, or choose a folder on another" if error.errno in NO_ROOM else ""
            fail((f"{error.filename}: {error.strerror}" if error.filename else str(error)) + advice)
        except MemoryError as error:
            from neural_brane.graph.memory import available, show_size

            free, cause = available(), f" ({error})" if str(error) else ""
            left = "" if free is None else f"; {show_size(free)} are free now"
            advice = "lower --dim; 'brane estimate SOURCE' prints the memory that a training needs"
            fail(f"memory ran out{cause}{left}; {advice}")
        except KeyboardInterrupt as stop:
            exit_stopped(stop, ctx.meta[TYPED])
        except Exception as error:  # a bug: Python prints its traceback
            LOG.error(printable(f"{type(error).__name__}: {error}"))
            raise
        finally:
            end_log()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Remember the typed arguments: `exit_stopped` prints the command that resumes a stopped training."""
        typed = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[TYPED] = typed
        return context


class BraneCommand(TyperCommand):
    """A command that refuses a second value of an option that takes one, where Typer would use the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for one in given:
            if given.count(one) > 1 and isinstance(one, TyperOption) and not (one.multiple or one.is_flag):
                raise ParameterError(f"{one.opts[0]} is given twice, but takes one value; leave one out")
        return super().parse_args(ctx, args)


def fail(message: str) -> None:
    """Print an error and exit with code 2."""
    LOG.error(printable(message))
    echo(f"error: {shorten(message)}", err=True)
    raise typer.Exit(2) from None


def help_of(command: Callable[..., None]) -> str:
    """Return the docstring of a command with the character that makes Click keep the line breaks of a paragraph."""
    return str(getdoc(command)).replace(r"\b", "\b")


app = typer.Typer(
    name="brane",
    cls=BraneGroup,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Learn": (embed, transform, update, estimate, tune, compare),
    "Use vectors": (evaluate, nearest, explain, suggest, cluster, explore, convert),
    "Prepare and inspect files": (inspect, info, split_edges, shard),
    "Lists and examples": (datasets, methods, formats, demo, reproduce),
}
for panel, commands in GROUPS.items():
    for command in commands:
        app.command(cls=BraneCommand, rich_help_panel=panel, help=help_of(command))(command)
processes = typer.Typer(help="Train in several processes, on one machine or many.", no_args_is_help=True)
processes.command("embed", cls=BraneCommand, help=help_of(distributed.embed))(distributed.embed)
app.add_typer(processes, name="distributed", rich_help_panel="Learn")


def show_version(asked: bool) -> None:
    """Print the version and exit if `--version` was given."""
    if asked:
        from neural_brane import __version__

        echo(f"brane {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Declare the options of `brane` itself; its help is `HELP`."""
