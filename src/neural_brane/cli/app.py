"""The application: its help, its commands, and how errors reach the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from neural_brane.cli import distributed
from neural_brane.cli.convert import convert, shard, split_edges
from neural_brane.cli.embed import embed, estimate, transform, update
from neural_brane.cli.evaluate import evaluate
from neural_brane.cli.experiments import compare, reproduce, tune
from neural_brane.cli.explore import demo, explore
from neural_brane.cli.info import datasets, formats, info, inspect, methods
from neural_brane.cli.insight import cluster, explain, nearest, suggest
from neural_brane.cli.terminal import LOG, TYPED, echo, end_log, leave, requests_as_errors
from neural_brane.errors import BraneError, printable

HELP = """
Learn one vector per node of a graph, from its links and its attributes.

\b
[bold]Start here[/bold]
  brane demo                                   learn from a graph shipped here
  brane embed citeseer -o vectors.npz          learn from a known dataset
  brane embed graph.txt --attributes words.txt -o vectors.tsv
  brane embed edges.csv --nodes people.csv -o vectors.parquet
  brane evaluate vectors.npz --labels citeseer
  brane nearest vectors.npz 100157             the nodes most like one
  brane explore vectors.npz --graph citeseer   look at them in a browser
  brane inspect edges.csv --nodes people.csv   how your files would be read
  brane formats                                files of graphs and vectors
"""


class BraneGroup(TyperGroup):
    """A group of commands that prints each foreseen error as one line on stderr and exits with code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with requests_as_errors():
                return super().invoke(ctx)
        except BraneError as error:
            fail(str(error))
        except (BrokenPipeError, typer.Exit):
            raise
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError as error:
            from neural_brane.graph.memory import available, show_size

            room, about = available(), f" ({error})" if str(error) else ""
            left = "" if room is None else f"; {show_size(room)} are free now"
            advice = "lower --dim; 'brane estimate SOURCE' shows what a training needs, by part"
            fail(f"memory ran out{about}{left}; {advice}")
        except KeyboardInterrupt as stop:
            leave(stop, ctx.meta[TYPED])
        except Exception as error:  # a defect: shown in full, and logged
            LOG.error(printable(f"{type(error).__name__}: {error}"))
            raise
        finally:
            end_log()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Keep the words of the command, to print the command that resumes a stopped training."""
        typed = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[TYPED] = typed
        return context


def fail(message: str) -> None:
    """Print an error and exit with code 2."""
    LOG.error(printable(message))
    echo(f"error: {message}", err=True)
    raise typer.Exit(2) from None


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
    "Prepare and look into files": (inspect, info, split_edges, shard),
    "Lists and examples": (datasets, methods, formats, demo, reproduce),
}
for panel, commands in GROUPS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
machines = typer.Typer(help="Train in many processes or on many machines.", no_args_is_help=True)
machines.command("embed")(distributed.embed)
app.add_typer(machines, name="distributed", rich_help_panel="Learn")


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        from neural_brane import __version__

        echo(f"brane {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Declare the options of the command as a whole; its help is `HELP`."""
