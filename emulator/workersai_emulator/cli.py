"""The command `workersai-emulator`."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from workersai_emulator import __version__
from workersai_emulator.options import DEFAULT_PORT, Options, pairs

_FLAGS = {"script": "--script", "scripts": "--script", "assumptions": "--assume", "limits": "--limit"}
_TURN_SECONDS = 0.0005

Command = TypeVar("Command", bound=Callable[..., Any])


class _Repeated(click.ParamType[str]):
    """A text that may be given many times; in an environment variable, parted by semicolons."""

    name = "text"
    envvar_list_splitter = ";"


def _option(name: str, **attributes: Any) -> Callable[[Command], Command]:
    """An option that is also a TOML key and an environment variable, from this one definition."""
    flag = name.split("/", maxsplit=1)[0].strip()
    variable = "WORKERSAI_EMULATOR_" + flag.removeprefix("--").replace("-", "_").upper()
    if attributes.get("multiple"):
        attributes["type"] = _Repeated()
    return click.option(name, envvar=variable, show_envvar=True, **attributes)


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Take the options of a TOML file as defaults; a table of names is what NAME=VALUE options are."""
    if path is None:
        return None
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise click.BadParameter(f"{path}: {fault.strerror}") from None
    except ValueError as fault:
        raise click.BadParameter(f"{path}: {fault}") from None
    known = {str(option.name): option for option in context.command.params if option.name != "config"}
    for key in said:
        if key not in known:
            raise click.BadParameter(f"{path}: there is no {key!r}; there are {', '.join(sorted(known))}")
    context.default_map = {key: _as_option(known[key], value) for key, value in said.items()}
    return path


def _as_option(option: click.Parameter, value: Any) -> Any:
    if isinstance(value, dict):
        return [f"{name}={_text(one)}" for name, one in value.items()]
    return [value] if option.multiple and not isinstance(value, list) else value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@click.group()
@click.version_option(__version__, message="workersai-emulator %(version)s")
def cli() -> None:
    """Run a local stand-in for Cloudflare Workers AI's batch queue."""


@cli.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="WORKERSAI_EMULATOR_CONFIG",
    show_envvar=True,
    is_eager=True,
    callback=_read_config,
    help="A TOML file of these options: keys as the flags are, with _ for -.",
)
@_option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@_option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="0 takes a free one.",
)
@_option("--seed", type=int, help="Gives the same ids and orders again; random unless given.")
@_option(
    "--script",
    multiple=True,
    help="How batches live: 'queued:1, running:1, done', default, instant, realistic; MODEL=SCRIPT for one model.",
)
@_option("--assume", multiple=True, metavar="FACT=ALTERNATIVE", help="Answer an open fact otherwise.")
@_option(
    "--limit", multiple=True, metavar="NAME=BYTES", help="payload_bytes or body_bytes, in bytes, or none."
)
@_option(
    "--worker-binding/--no-worker-binding", default=True, help="Whether the /batch Worker has its AI binding."
)
@_option("--worker-model", help="The model of the /batch Worker, also MODEL.  [default: @cf/baai/bge-m3]")
@_option("--api-token", multiple=True, help="A token to accept; without it any token passes.")
@_option(
    "--allow-host", multiple=True, help="A further name under which browsers and the control plane may call."
)
@_option("--control-token", help="What the control plane asks for; needed beyond loopback.")
@_option(
    "--store-bytes",
    type=click.IntRange(1),
    default=1_000_000_000,
    show_default=True,
    help="Bound on kept batches.",
)
@_option(
    "--store-batches",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="Bound on their number.",
)
def serve(config: Path | None, **said: Any) -> None:
    """Run the emulator until it is told to stop.

    Prints its URL on stdout when it is ready. Each option is also a key of the --config file.
    """
    options = _options(**said)
    sys.setswitchinterval(_TURN_SECONDS)  # the worker thread must not keep a poll waiting
    logging.basicConfig(level=logging.WARNING, format="workersai-emulator: %(message)s", stream=sys.stderr)
    _new_loop_runner()(_serve(options))


def _options(
    *,
    script: tuple[str, ...],
    assume: tuple[str, ...],
    limit: tuple[str, ...],
    worker_binding: bool,
    worker_model: str | None,
    api_token: tuple[str, ...],
    allow_host: tuple[str, ...],
    **plain: Any,
) -> Options:
    from workersai_emulator.settings import Settings

    general = [text for text in script if not text.startswith("@")]
    if len(general) > 1:
        raise ValueError("--script: there can be one for all models; give the others as MODEL=SCRIPT")
    said = {
        "script": general[0] if general else None,
        "scripts": pairs(tuple(text for text in script if text.startswith("@")), "--script"),
        "assumptions": pairs(assume, "--assume"),
        "limits": {name: _bytes(text) for name, text in pairs(limit, "--limit").items()},
        "worker_binding": worker_binding,
    }
    try:
        settings = Settings.parse(said)
    except ValueError as fault:
        setting, _, complaint = str(fault).partition(":")
        raise ValueError(f"{_FLAGS[setting]}:{complaint}") from None
    return Options(
        settings=settings,
        worker_model=worker_model or os.environ.get("MODEL"),
        tokens=frozenset(api_token),
        allowed_hosts=frozenset(allow_host),
        **plain,
    )


def _bytes(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal():
        raise ValueError(f"--limit: {text!r} is not a number of bytes, nor none")
    return int(text)


async def _serve(options: Options) -> None:
    from workersai_emulator.console import greeting, printer
    from workersai_emulator.server import Server

    def write(line: str) -> None:
        click.echo(line, err=True)

    terminal = sys.stderr.isatty()
    server = Server(options, printer(write, every=terminal, colour=terminal and "NO_COLOR" not in os.environ))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # where a loop takes no signals, Ctrl-C interrupts it
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
    try:
        await server.start()
    except OSError as fault:
        raise _cannot_listen(options, fault) from None
    url = f"http://{_in_url(options.host)}:{server.port}"
    write(greeting(url, server.seed, strict=bool(options.tokens)))
    click.echo(url)
    await stopped.wait()
    await server.stop()


def _cannot_listen(options: Options, fault: OSError) -> ValueError:
    if fault.errno == errno.EADDRINUSE:
        return ValueError(f"--port: {options.port} is in use on {options.host}; 0 takes a free one")
    return ValueError(f"--host, --port: cannot listen on {options.host}:{options.port}: {fault.strerror}")


def _in_url(host: str) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - what was asked for is shown
    return f"[{shown}]" if ":" in shown else shown


def _new_loop_runner() -> Callable[[Any], None]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


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


def _fail(reason: str) -> NoReturn:
    click.echo(f"workersai-emulator: {' '.join(reason.split())}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
