"""The application: its help, its commands, and how errors reach the user."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from neural_brane.cli.compare import compare
from neural_brane.cli.convert import convert
from neural_brane.cli.demo import demo
from neural_brane.cli.embed import embed
from neural_brane.cli.estimate import estimate
from neural_brane.cli.evaluate import evaluate
from neural_brane.cli.explore import explore
from neural_brane.cli.insight import cluster, explain, suggest
from neural_brane.cli.inspect import info, inspect
from neural_brane.cli.lists import datasets, methods
from neural_brane.cli.nearest import nearest
from neural_brane.cli.reproduce import reproduce
from neural_brane.cli.shard import shard, split_edges
from neural_brane.cli.stopping import TYPED, leave, requests_as_errors
from neural_brane.cli.terminal import LOG, echo, end_log
from neural_brane.cli.tune import tune
from neural_brane.errors import BraneError, printable
from neural_brane.files.vectors import help_lines

HELP = f"""
Learn one vector per node of a graph, from its links and its attributes.

\b
[bold]Start here[/bold]
  brane demo                                   learn from a graph shipped here
  brane datasets                               list the graphs known by name
  brane embed citeseer -o vectors.npz          learn from one of them
  brane estimate graph.txt                     the memory and time it takes
  brane embed graph.txt --attributes words.txt -o vectors.tsv
  brane embed edges.csv --nodes people.csv -o vectors.parquet
  brane inspect edges.csv --nodes people.csv   how your files would be read
  brane info m.brane                           what is inside a file of ours
  brane evaluate vectors.npz --labels citeseer
  brane evaluate gensim.txt --labels classes.txt --task all
  brane explore vectors.npz --graph graph.txt  look at them in a browser
  brane nearest vectors.npz 100157             the nodes most like one
  brane convert vectors.npz -o vectors.parquet the vectors in another format
  brane explain model.brane 17 204             what makes two nodes alike
  brane suggest model.brane 17                 links it is likely to have
  brane cluster vectors.npz --graph citeseer   groups, and what names them
  brane shard edges.parquet -o parts --parts 8 a graph larger than memory
  brane methods                                other ways to learn the vectors
  brane compare graph.txt --labels classes.txt which of them is best for it
  brane reproduce                              the paper's experiments, again

\b
[bold]Files a graph is read from[/bold]
  graph file      one edge per line, 'u v' or 'u v weight'; a first line
                  'nodes edges' is optional
                      17 99 1.0
                      17 204 0.5
  attribute file  one node per line: its id, then ID or ID:VALUE for each
                      17 3:1 8:1
  label file      one node per line, 'node<TAB>label'
                      17      databases
                  Ids are integers or names. Spaces, tabs or commas
                  separate; a line that begins with # does not count.
  tables          CSV, TSV, Parquet, JSON lines or Arrow: one of edges and,
                  with --nodes, one of nodes, whose columns become attributes
                      name,age,country
                      ann,31,IN
  .cites          'cited<TAB>citing' lines; its .content lies beside it
  .npz            arrays {{adj,attr}}_{{data,indices,indptr,shape}}, labels, ids

\b
[bold]Files vectors are written to[/bold]
{help_lines()}
  folder               parts with a manifest: 'brane convert --parts N' splits
                       vectors into one, and 'brane convert FOLDER' merges it
                       All of them are read too.
"""


class BraneGroup(TyperGroup):
    """Commands whose foreseen errors are one line on stderr and exit code 2, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            with requests_as_errors():
                return super().invoke(ctx)
        except BraneError as error:
            fail(str(error))
        except BrokenPipeError:
            raise
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError as error:
            fail(out_of_memory(error))
        except KeyboardInterrupt as stop:
            leave(stop, ctx.meta[TYPED])
        except Exception as error:  # a mistake of ours: shown in full, and kept in the log
            LOG.error(printable(f"{type(error).__name__}: {error}"))
            raise
        finally:
            end_log()

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Note the words of the command, to tell which one goes on with a training that is stopped."""
        typed = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[TYPED] = typed
        return context


def out_of_memory(error: MemoryError) -> str:
    """What to say where memory has run out all the same: it was taken for something else, or was never there."""
    from neural_brane.graph.memory import available, show_size

    room = available()
    left = "" if room is None else f"; {show_size(room)} can be had now"
    about = f" ({error})" if str(error) else ""
    return f"memory ran out{about}{left}; 'brane estimate SOURCE' tells what a training takes, by part: lower --dim"


def fail(message: str) -> None:
    """Say what is wrong and leave with exit code 2."""
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
app.command()(embed)
app.command()(inspect)
app.command()(info)
app.command()(estimate)
app.command()(evaluate)
app.command()(explore)
app.command()(nearest)
app.command()(convert)
app.command()(compare)
app.command()(explain)
app.command()(suggest)
app.command()(cluster)
app.command()(split_edges)
app.command()(shard)
app.command()(datasets)
app.command()(methods)
app.command()(tune)
app.command()(reproduce)
app.command()(demo)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from neural_brane import __version__

        echo(f"brane {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and leave."),
    ] = False,
) -> None:
    """Options of the command as a whole; its help is `HELP`."""
