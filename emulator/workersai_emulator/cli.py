"""The command `workersai-emulator`."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from workersai_emulator import __version__
from workersai_emulator.flags import options_from, server_options, worker_model_of_environment
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN
from workersai_emulator.options import DEFAULT_PORT, Options

NOT_FOUND = 127


@click.group()
@click.version_option(__version__, message="workersai-emulator %(version)s")
def cli() -> None:
    """Run a local stand-in for Cloudflare Workers AI and its batch queue."""


@cli.command()
@server_options(port=DEFAULT_PORT)
def serve(**said: Any) -> int:
    """Run the emulator until it is told to stop.

    Prints its URL on stdout when it is ready. Each option is also a key of the --config file.
    """
    options = _options(**said)
    from workersai_emulator import serving

    if options.workers > 1:
        from workersai_emulator.workers import serve_with_workers

        return serve_with_workers(options)
    serving.run(serving.serve(options), options)
    return 0


@cli.command("exec", context_settings={"allow_interspersed_args": False})
@server_options(port=0)
@click.option(
    "--verdict",
    is_flag=True,
    help="Judge what COMMAND did, on stderr; errors and warnings turn a 0 into a 1.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_beside(command: tuple[str, ...], *, verdict: bool, **said: Any) -> int:
    """Run COMMAND beside an emulator of its own, with the environment that points every client there.

    Takes a free port, and all options of `serve`. The exit code is the command's own.
    """
    options = _options(**said)
    if options.workers > 1:
        raise ValueError("--workers: exec runs its command beside one process")
    if shutil.which(command[0]) is None:
        _fail(f"exec: {command[0]!r} is no command that can be found and run", NOT_FOUND)
    from workersai_emulator import beside, serving

    return serving.run(beside.serve_for(command, options, verdict=verdict), options)


@cli.command("env")
@click.option(
    "--for", "client", metavar="NAME", help="What this one client needs; an unknown name lists them."
)
@click.option(
    "--url", default=f"http://127.0.0.1:{DEFAULT_PORT}", show_default=True, help="Where the server is."
)
@click.option("--account-id", default=DEVELOPMENT_ACCOUNT, show_default=True, help="The account to use.")
@click.option("--token", default=DEVELOPMENT_TOKEN, show_default=True, help="The token to send.")
def print_environment(*, client: str | None, url: str, account_id: str, token: str) -> None:
    """Print what points clients at a running emulator: lines for a shell, or for one client's code.

    In a shell: eval "$(workersai-emulator env)".
    """
    from workersai_emulator.pointing import exports

    try:
        click.echo(exports(url.rstrip("/"), account_id, token, client))
    except LookupError as unknown:
        raise ValueError(unknown.args[0]) from None


@cli.command("worker-config")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--url", default=f"http://127.0.0.1:{DEFAULT_PORT}", show_default=True, help="Where the server is."
)
def write_worker_config(file: Path | None, *, url: str) -> None:
    """Write wrangler.emulator.jsonc beside FILE: the same Worker, whose AI binding is the emulator.

    FILE is wrangler.json, wrangler.jsonc or wrangler.toml of the current directory unless given; it is not changed.
    Everything in it is kept but its comments.
    """
    from workersai_emulator.worker_config import find_config, write_config

    written = write_config(find_config(Path()) if file is None else file, url.rstrip("/"))
    click.echo(f"wrote {written}; never deploy it")
    click.echo("once  npm install --save-dev workersai-emulator")
    click.echo(f"run   npx wrangler dev -c {shlex.quote(str(written))}")
    click.echo(
        "      (wrangler pages dev takes no -c: there, put it in place of your own file and keep that aside)"
    )


def _options(*, worker_model: str | None, **said: Any) -> Options:
    return options_from(worker_model=worker_model or worker_model_of_environment(), **said)


def main() -> None:
    """Run the command; whatever is wrong with what was asked is one line on stderr and exit code 2."""
    try:
        code = cli.main(prog_name="workersai-emulator", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as fault:
        _fail(fault.format_message())
    except (ValueError, OSError) as fault:
        _fail(str(fault))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(reason: str, code: int = 2) -> NoReturn:
    click.echo(f"workersai-emulator: {' '.join(reason.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
