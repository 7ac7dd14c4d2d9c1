"""The command line of the lab: hosts up and down, commands in them, and what they install from."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from _core.errors import InferopsError

from . import environment, hosts, kept, machine, models, wheelhouse
from .places import cache


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    up = commands.add_parser("up", help="start fresh hosts")
    up.add_argument("names", nargs="+", metavar="NAME")
    up.add_argument("--suite", default="bookworm", help="Debian release of the host (default: %(default)s)")
    up.add_argument("--publish", action="append", default=[], metavar="127.0.0.1:PORT:PORT")
    up.add_argument("--mount", action="append", default=[], metavar="SOURCE:TARGET[:ro]")
    up.add_argument("--group", default="sglang", help="group in the inventory (default: %(default)s)")
    up.add_argument("--kept", metavar="PURPOSE", help="start from the host kept for this purpose, where one is up to date")
    up.add_argument("--inventory", type=Path, help="where the inventory goes (default: in the cache, named after the hosts)")
    up.set_defaults(run=_up)

    keep = commands.add_parser("keep", help="keep a host as it is, for `up --kept`")
    keep.add_argument("name", metavar="NAME")
    keep.add_argument("purpose", metavar="PURPOSE")
    keep.set_defaults(run=_keep)

    down = commands.add_parser("down", help="remove hosts")
    down.add_argument("names", nargs="*", metavar="NAME")
    down.add_argument("--all", action="store_true", help="every host of the lab")
    down.set_defaults(run=_down)

    listing = commands.add_parser("list", help="running hosts with their addresses")
    listing.set_defaults(run=_list)

    execute = commands.add_parser("exec", help="run a command in a host, with its output and status")
    execute.add_argument("name", metavar="NAME")
    execute.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")
    execute.set_defaults(run=_exec)

    venv = commands.add_parser("venv", help="make the controller's environment (.venv) and print its Python")
    venv.set_defaults(run=_venv)

    house = commands.add_parser("wheelhouse", help="bring the wheelhouse and the simulated model up to date")
    house.add_argument("--cpu", action="store_true", help="also the real SGLang for a CPU (700 MB) and a tiny model for it")
    house.set_defaults(run=_wheelhouse)
    return parser


def _wheelhouse(args: argparse.Namespace) -> int:
    python = str(environment.create(cache("venv-pip")))
    print(models.build())
    print(wheelhouse.build(python))
    if args.cpu:
        house = wheelhouse.build_cpu(python)
        print(house, models.build_tiny(house), sep="\n")
    return 0


def _venv(dummy: argparse.Namespace) -> int:
    print(environment.ensure(lock=environment.lock_for(sys.executable)))
    return 0


def _up(args: argparse.Namespace) -> int:
    machine.prepare()
    picture = kept.find(args.kept) if args.kept else None
    for name in args.names:
        hosts.up(name, suite=args.suite, publish=args.publish, mounts=args.mount, picture=picture)
    path = args.inventory or cache("inventories", "-".join(args.names) + ".json")
    hosts.write_inventory(path, args.names, group=args.group)
    print(path)
    return 0


def _keep(args: argparse.Namespace) -> int:
    print(kept.keep(args.name, args.purpose))
    return 0


def _down(args: argparse.Namespace) -> int:
    hosts.down(hosts.running() if args.all else args.names)
    return 0


def _list(dummy: argparse.Namespace) -> int:
    for name in hosts.running():
        print(name, hosts.address(name))
    return 0


def _exec(args: argparse.Namespace) -> int:
    tool = hosts.podman()
    argv = tool.argv("exec", *(["-it"] if sys.stdin.isatty() else ["-i"]), args.name, *(args.argv or ["bash", "-l"]))
    os.execvpe(argv[0], argv, {**os.environ, **tool.env})


def main(argv: list[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except InferopsError as exc:
        print(exc, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
