"""Command lines of both programs: one way to declare, list, complete and run commands.

The module of a command has `PARAMS`, its options and arguments, or `ACTIONS`, its subcommands, and
a function `run`, which takes the values. The `execute` of its package calls `run`.
"""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from errno import EDQUOT, EFBIG, EIO, ENOSPC, EPIPE
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final, TypeAlias, TypeVar

import click
from click.exceptions import NoArgsIsHelpError

from edge_api.schema.environment import VERSION

Arguments: TypeAlias = SimpleNamespace
"""The values of a command's options and arguments, and its own name as `action`."""
Actions: TypeAlias = Mapping[str, tuple[str, str, Sequence[click.Parameter]]]
"""Subcommands by name: a summary, an example's arguments, and the options and arguments."""
Sections: TypeAlias = Mapping[str, Mapping[str, tuple[str, str, str]]]
"""Commands by heading and name: a module, a summary, and an example's arguments."""
PATH: Final = click.Path(path_type=Path)
JSON: Final = click.Option(["--json"], is_flag=True, help="print JSON")


class _Folder(click.Path):
    """A parameter type for the path of an existing folder."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        """Return the path of the folder. Raises BadParameter if it does not exist."""
        if not Path(value).is_dir():
            self.fail(f"there is no folder {str(value)!r}; make it, or name another", param, ctx)
        return Path(value)


FOLDER: Final = _Folder(path_type=Path)
Value = TypeVar("Value")


class Program(click.Group):
    """A group of commands that imports only the module of the command that is run."""

    def __init__(self, summary: str, sections: Sections) -> None:
        self._sections = sections
        self._declared = {name: each for part in sections.values() for name, each in part.items()}
        listed = {name: click.Command(name, help=each[1]) for name, each in self._declared.items()}
        super().__init__(
            help=summary,
            no_args_is_help=True,
            commands=listed,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        click.version_option(VERSION, message="fore-edge %(version)s")(self)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands under their headings."""
        for heading, part in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, summary) for name, (_, summary, _) in part.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the words name, with its options, and the words after it."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and command:
            place, summary, example = self._declared[name]
            module = import_module(place)
            command = _make_command(module, f"{ctx.command_path} {name}", summary, example)
            # Shell completion omits the default arguments: the user types others in their place.
            rest = rest or [*getattr(module, "DEFAULT", ())][: not ctx.resilient_parsing]
        return name, command, rest


def _make_command(
    module: ModuleType,
    path: str,
    summary: str,
    example: str,
    params: Sequence[click.Parameter] | None = None,
) -> click.Command:
    about: dict[str, Any] = {
        "help": f"{summary[0].upper()}{summary[1:]}.",
        "short_help": summary,
        "epilog": f"\b\nExample: {path} {example}".rstrip(),
    }
    if params is None and hasattr(module, "ACTIONS"):
        actions = {
            name: _make_command(module, f"{path} {name}", *declared)
            for name, declared in module.ACTIONS.items()
        }
        return click.Group(commands=actions, no_args_is_help=True, **about)
    params = module.PARAMS if params is None else params
    return click.Command(None, params=[*params], callback=partial(_call, module), **about)


@click.pass_context
def _call(context: click.Context, /, module: ModuleType, **values: Any) -> int:
    gc.freeze()  # modules stay loaded: the garbage collector need not visit them
    gc.enable()
    execute = sys.modules[str(module.__package__)].execute
    return int(execute(module, Arguments(action=context.info_name, **values)))


def run_program(program: Program, words: Sequence[str] | None, name: str) -> int:
    """Run the command that the words name. Returns its exit status, or 2 for wrong usage.

    `name` is the name of the program in messages.
    """
    words = sys.argv[1:] if words is None else [*words]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    code = 2
    gc.disable()  # loading modules makes no garbage; collections would take a tenth of the time
    try:
        code = int(program.main(words, name, standalone_mode=False))
        print(end="", flush=True)  # noqa: T201  what is left of the output
    except NoArgsIsHelpError as error:
        error.show()
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else name
        sys.stderr.write(f"{path}: {error.format_message()}\nSee {path} --help.\n")
    except click.Abort:
        code = 130
    except Exception as error:
        cause = error.__cause__ or error  # a build would blame its own folder
        fault = cause.errno if isinstance(cause, OSError) and cause.filename is None else None
        if sys.stdout and fault in {EPIPE, ENOSPC, EDQUOT, EFBIG, EIO}:
            try:
                print(flush=True)  # noqa: T201  it fails again where the output is at fault
            except OSError as unwritable:
                discard_output()
                # After a broken pipe whoever reads has read enough.
                sys.exit(
                    1
                    if isinstance(unwritable, BrokenPipeError)
                    else f"{name}: the standard output cannot be written ({unwritable.strerror})"
                )
        raise
    finally:
        gc.enable()
    return code


def discard_output() -> None:
    """Discard what is printed from now on, as Python would fail again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def parameter_type(read: Callable[[str], Value], noun: str = "") -> Callable[[str], Value]:
    """Return a type for click that parses by `read`; `noun` begins the text of its ValueError."""

    def convert(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise click.BadParameter(f"{noun}{error}") from None

    return convert


def require_one(arguments: Arguments, *names: str, least: int = 1) -> None:
    """Raise UsageError unless exactly one of `names` is given; with `least=0`, none is fine."""
    given = sum(
        bool(getattr(arguments, name.strip("-").lower().replace("-", "_"))) for name in names
    )
    if not least <= given <= 1:
        raise click.UsageError(f"Give {'' if least else 'at most '}one of {', '.join(names)}.")
