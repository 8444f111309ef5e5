"""Play a campaign in a folder, or what is missing of it. It can be stopped at any time (Ctrl-C,
kill), and continues when it is called again."""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

from tests.chaos.campaign import KINDS, Campaign
from tests.chaos.report import table, trouble


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--state", type=Path, default=Path("build/chaos"), help="the folder")
    parser.add_argument("--seed", type=int, help="of a new campaign; by default the time")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no round later")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND",
                        help=f"play only rounds of these kinds: {', '.join(KINDS)}")  # fmt: skip
    parser.add_argument("--report", action="store_true", help="only print what has been found")
    given = parser.parse_args()
    try:
        campaign = Campaign(given.state, given.seed)
    except ValueError as error:
        parser.error(str(error))
    if not given.report:
        try:
            play(campaign, given.kinds, given.minutes)
        except KeyboardInterrupt:
            print("\nstopped; the same command continues")
            return 130
    return report(campaign, given.kinds)


def play(campaign: Campaign, kinds: list[str], minutes: float) -> None:
    until = time.monotonic() + 60 * minutes
    missing = campaign.missing(kinds)
    print(f"{len(missing)} rounds to play in {campaign.folder}", flush=True)
    for round in missing:
        if time.monotonic() > until:
            return
        played = campaign.play(round)
        what = ", ".join(f"{n} {name}" for name, n in played.findings.faults.items())
        print(f"{round.number:4} {round.kind}, {round.store}: {what} ({played.seconds:.0f} s)")
        for line in trouble([played]):
            print(f"     WRONG: {line}", flush=True)


def report(campaign: Campaign, kinds: list[str]) -> int:
    """Print the figures. Returns 1 if anything was wrong."""
    rounds = [played for played in campaign.played() if played.round.kind in kinds]
    missing = len(campaign.missing(kinds))
    minutes = sum(played.seconds for played in rounds) / 60
    print(f"\nseed {campaign.seed}, {platform.machine()}, Python {platform.python_version()}: ")
    print(f"{len(rounds)} rounds in {minutes:.0f} minutes, {missing} are missing\n")
    print(table(rounds))
    wrong = trouble(rounds)
    print("\nSOMETHING IS WRONG" if wrong else "\nall good", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
