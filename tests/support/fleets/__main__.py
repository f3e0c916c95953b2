"""`make fleet-crash N=300`: kills and freezes that many workers, and says what that showed."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time

from fleets.crash import FleetCrash
from fleets.judge import Wrong
from postgres import Proxy, Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="fleets", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--freeze", type=float, default=0.1, help="the part that is frozen")
    parser.add_argument("--stops", type=int, default=0, help="how often the database is stopped")
    parser.add_argument("--cuts", type=int, default=0, help="how often the network is cut")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"\r{text}, {time.monotonic() - began:.0f} s", end="", flush=True)

    with Server(fsync=options.stops > 0) as server:
        url = server.new_database()
        with Proxy(url) as proxy:
            through = proxy.url if options.cuts else url
            test = FleetCrash(url, options.seed, tell=tell, through=through)
            disturb = Disturbances(server, proxy, options).disturb
            try:
                running = test.run(options.kills, freeze=options.freeze, disturb=disturb)
                seen = asyncio.run(running)
            except Wrong as wrong:
                print(f"\n{wrong}\nseed {options.seed}", file=sys.stderr)
                return 1
    print()
    for name, count in sorted(seen.items()):
        print(f"{count:>8}  {name}")
    print(f"\nholds after {options.kills} in {time.monotonic() - began:.0f} s")
    return 0


class Disturbances:
    """Stops the database and cuts the network, evenly between the kills."""

    def __init__(self, server: Server, proxy: Proxy, options: argparse.Namespace) -> None:
        self._server, self._proxy = server, proxy
        self._stops = _spread(options.stops, options.kills)
        self._cuts = _spread(options.cuts, options.kills)
        self._lease = 3.0

    def disturb(self, number: int) -> None:
        if number in self._stops:
            self._server.stop("immediate")
            time.sleep(0.5)
            self._server.start()
        if number in self._cuts:
            # In turn: answers are swallowed, all is dropped, nothing moves; longer than a lease.
            ways = (self._proxy.swallow_answers, self._proxy.drop, self._proxy.freeze)
            ways[number % 3]()
            time.sleep(self._lease + 1.0)
            self._proxy.resume()


def _spread(count: int, of: int) -> set[int]:
    return {(at + 1) * of // (count + 1) for at in range(count)}


if __name__ == "__main__":
    sys.exit(main())
