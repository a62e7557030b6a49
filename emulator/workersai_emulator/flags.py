"""The options of `serve`: each a flag, a key of a TOML file and an environment variable, from one definition."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from workersai_emulator.options import Options, pairs
from workersai_emulator.usage import PLANS

if TYPE_CHECKING:
    from workersai_emulator.api_tokens import Token

_FLAGS = {
    "script": "--script",
    "scripts": "--script",
    "assumptions": "--assume",
    "limits": "--limit",
    "plan": "--plan",
}
#: What a context carries for a file that is to be read alone.
_FILE_ONLY = object()

Command = TypeVar("Command", bound=Callable[..., Any])


def server_options(*, port: int) -> Callable[[Command], Command]:
    """Give a command all options of a server, with the port that it takes when none is said."""

    def decorate(command: Command) -> Command:
        for option in reversed(_definitions(port)):
            command = option(command)
        return command

    return decorate


def options_from(
    *,
    config: Path | None,
    script: tuple[str, ...],
    assume: tuple[str, ...],
    limit: tuple[str, ...],
    plan: str,
    worker_binding: bool,
    api_token: tuple[str, ...],
    allow_host: tuple[str, ...],
    scenario: tuple[str, ...],
    grace: str,
    **plain: Any,
) -> Options:
    """Make `Options` of what the flags say. Raises ValueError that names the flag."""
    from workersai_emulator.settings import Settings

    _check_replay(**plain)
    general = [text for text in script if not text.startswith("@")]
    if len(general) > 1:
        raise ValueError("--script: there can be one for all models; give the others as MODEL=SCRIPT")
    said = {
        "script": general[0] if general else None,
        "scripts": pairs(tuple(text for text in script if text.startswith("@")), "--script"),
        "assumptions": pairs(assume, "--assume"),
        "limits": {name: _amount(text) for name, text in pairs(limit, "--limit").items()},
        "plan": plan,
        "worker_binding": worker_binding,
    }
    try:
        settings = Settings.parse(said)
    except ValueError as fault:
        setting, _, complaint = str(fault).partition(":")
        raise ValueError(f"{_FLAGS[setting]}:{complaint}") from None
    return Options(
        settings=settings,
        scenarios=tuple(_scenario(name) for name in scenario),
        tokens=tuple(map(_token, api_token)),
        allowed_hosts=frozenset(allow_host),
        grace_seconds=_seconds("--grace", grace),
        **plain,
    )


def _seconds(flag: str, text: str) -> float:
    from workersai_emulator.clock import parse_duration

    try:
        return parse_duration(text)
    except ValueError as fault:
        raise ValueError(f"{flag}: {fault}") from None


def _check_replay(*, replay: Path | None, replay_or_emulate: bool, workers: int = 1, **_: Any) -> None:
    if replay_or_emulate and replay is None:
        raise ValueError("--replay-or-emulate goes with --replay DIR")
    if replay is not None and workers > 1:
        raise ValueError("--replay: a recording is walked through by one process; leave out --workers")


def _token(text: str) -> Token:
    from workersai_emulator.api_tokens import Token

    try:
        return Token.parse(text)
    except ValueError as fault:
        raise ValueError(f"--api-token: {fault}") from None


def _scenario(name: str) -> str:
    from workersai_emulator.scenarios import scenario

    try:
        return scenario(name).name
    except LookupError as unknown:
        raise ValueError(f"--scenario: {unknown.args[0]}") from None


def options_in(path: Path) -> Options:
    """What a TOML file says, and neither flags nor the environment. Raises ValueError in one line."""
    try:
        with _nothing_else.make_context("serve", ["--config", str(path)], obj=_FILE_ONLY) as context:
            return options_from(**context.params)
    except click.ClickException as fault:
        raise ValueError(fault.format_message()) from None


def worker_model_of_environment() -> str | None:
    """The model that the deployed Worker's own variable names."""
    return os.environ.get("MODEL")


class _Option(click.Option):
    """An option whose variable is not looked at where a file is to be read alone."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        return None if ctx.obj is _FILE_ONLY else super().resolve_envvar_value(ctx)


class _Repeated(click.types.StringParamType):
    """A text that may be given many times; in an environment variable, parted by semicolons."""

    name = "text"
    envvar_list_splitter = ";"


def _option(name: str, **attributes: Any) -> Callable[[Command], Command]:
    flag = name.split("/", maxsplit=1)[0].strip()
    variable = "WORKERSAI_EMULATOR_" + flag.removeprefix("--").replace("-", "_").upper()
    if attributes.get("multiple"):
        attributes["type"] = _Repeated()
    return click.option(name, cls=_Option, envvar=variable, show_envvar=True, **attributes)


def _definitions(port: int) -> list[Callable[[Any], Any]]:
    return [
        _option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            is_eager=True,
            callback=_read_config,
            help="A TOML file of these options: keys as the flags are, with _ for -.",
        ),
        _option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
        _option(
            "--port",
            default=port,
            show_default=True,
            type=click.IntRange(0, 65535),
            help="0 takes a free one.",
        ),
        _option("--seed", type=int, help="Gives the same ids and orders again; random unless given."),
        *_settings_definitions(),
        *_access_definitions(),
        *_running_definitions(),
    ]


def _access_definitions() -> list[Callable[[Any], Any]]:
    return [
        _option(
            "--api-token",
            multiple=True,
            metavar="TOKEN[:read|edit|none][@ACCOUNT]",
            help="A token to accept, for one account or all; without it any token passes.",
        ),
        _option(
            "--allow-host",
            multiple=True,
            help="A further name under which browsers and the control plane may call.",
        ),
        _option("--control-token", help="What the control plane asks for; needed beyond loopback."),
    ]


def _running_definitions() -> list[Callable[[Any], Any]]:
    return [
        _option(
            "--replay",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help="Answer from a recording of workersai-verify --record; what is not in it is refused.",
        ),
        _option("--replay-or-emulate", is_flag=True, help="Emulate what the recording does not have."),
        _option(
            "--state",
            metavar="FILE|URL",
            help="Keep all state in a file, or in a Redis that several emulators share; in memory unless given.",
        ),
        _option(
            "--workers",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="So many processes serve on one port, over a state that they share.",
        ),
        _option(
            "--log",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="json tells of every exchange in one line of JSON on stderr, a terminal or not.",
        ),
        _option(
            "--grace",
            metavar="DURATION",
            default="5s",
            show_default=True,
            help="What replies under way may still take when it is told to end; told twice, it ends at once.",
        ),
        _option(
            "--store-bytes",
            type=click.IntRange(1),
            default=1_000_000_000,
            show_default=True,
            help="Bound on kept batches.",
        ),
        _option(
            "--store-batches",
            type=click.IntRange(1),
            default=100_000,
            show_default=True,
            help="Bound on their number.",
        ),
    ]


def _settings_definitions() -> list[Callable[[Any], Any]]:
    return [
        _option(
            "--script",
            multiple=True,
            help="How batches live: 'queued:1, running:1, done', default, instant, realistic; "
            "MODEL=SCRIPT for one model.",
        ),
        _option("--scenario", multiple=True, metavar="NAME", help="Begin with a scenario, for all accounts."),
        _option("--assume", multiple=True, metavar="FACT=ALTERNATIVE", help="Answer an open fact otherwise."),
        _option(
            "--limit",
            multiple=True,
            metavar="NAME=AMOUNT",
            help="payload_bytes, body_bytes, requests_per_minute, daily_neurons, text_tokens, call_tokens or "
            "context_tokens: a number, none, or documented.",
        ),
        _option(
            "--plan",
            type=click.Choice(PLANS),
            default="free",
            show_default=True,
            help="What is beyond the day's neurons: on free it is refused where daily_neurons is set, on paid billed.",
        ),
        _option(
            "--worker-binding/--no-worker-binding",
            default=True,
            help="Whether the /batch Worker has its AI binding.",
        ),
        _option(
            "--worker-model", help="The model of the /batch Worker, also MODEL.  [default: @cf/baai/bge-m3]"
        ),
    ]


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Take the options of a TOML file as defaults; a table of names is what NAME=VALUE options are."""
    if path is None:
        return None
    try:
        import tomllib

        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise click.BadParameter(f"{path}: {fault.strerror}") from None
    except ValueError as fault:
        raise click.BadParameter(f"{path}: {fault}") from None
    known = {str(option.name): option for option in context.command.params if isinstance(option, _Option)}
    del known["config"]
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


def _amount(text: str) -> int | str:
    """A number; what the word means that it is otherwise, the settings know."""
    return int(text) if text.isdecimal() and text.isascii() else text


@click.command()
@server_options(port=0)
def _nothing_else() -> None:
    """Own the options for a file that is read without a command."""
