"""Who says which packages a script may have."""

from __future__ import annotations

import json
import re
import select
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from callslip import _core
from callslip._threads.pool import in_thread
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._answer import find_person
from callslip.sandbox._events import InputRequest
from callslip.sandbox._perform import awaited_sync

if TYPE_CHECKING:
    from callslip.sandbox._answer import Answerer

__all__ = ["Approval", "Deps"]

Deps: TypeAlias = "Literal['ask'] | Sequence[str] | Callable[[list[str]], bool | Awaitable[bool]]"
"""A person who is asked, what is approved already, or a function that says."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_YES = {"y", "yes"}


class Approval:
    """The packages that scripts may have.

    What a person has allowed once is not asked about again.

    Raises:
        UsageError: What was given is neither a list of names and requirements nor a function.
    """

    def __init__(self, deps: Deps) -> None:
        self._names: set[str] = set()
        self._requirements: set[str] = set()
        self._decide: Callable[[list[str]], Any] | None = None
        self.asks = deps == "ask"
        if self.asks:
            return
        if callable(deps):
            self._decide = deps
            return
        if isinstance(deps, str) or not isinstance(deps, Sequence):
            raise UsageError(f"expected deps='ask', a list of packages or a function: got {deps!r}")
        for one in deps:
            if not isinstance(one, str):
                raise UsageError(f"expected deps to be a list of strings: got {one!r} in it")
            if _NAME.fullmatch(one):
                self._names.add(_normal(one))
            else:
                self._requirements.add(_requirement(one))

    def words(self) -> str:
        """Return what a model is told of it."""
        if self.asks or self._decide is not None:
            return "others than the standard library's have to be approved"
        known = sorted(self._names | self._requirements)
        return f"only these: {', '.join(known)}" if known else ""

    def unapproved(self, dependencies: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return what is not approved yet. A name alone approves none of its extras."""
        return [
            requirement
            for requirement, name in zip(dependencies, names, strict=True)
            if (name not in self._names or "[" in requirement.partition(";")[0])
            and requirement not in self._requirements
        ]

    def unapproved_packages(self, packages: Sequence[str], declared: Sequence[str]) -> list[str]:
        """Return what packages bring along, as `name==version`, and nobody has approved yet.

        A list approves its packages with what they need; it is told in an event.
        """
        if not self.asks and self._decide is None:
            return []
        known = {*declared, *self._names, *map(_name, self._requirements)}
        return [one for one in packages if _name(one) not in known]

    def decide(self, requirements: list[str], attend: Callable[[], None]) -> None:
        """Have somebody decide, in this thread.

        Raises:
            ScriptRefused: They may not be installed.
        """
        if self._decide is not None:
            said = self._decide(list(requirements))
            if hasattr(said, "__await__"):
                said = awaited_sync(said, attend)
            self._heed(said, requirements)
            return

        def wait(descriptor: int | None) -> None:
            attend()
            _wait(descriptor)

        answer = self._person(requirements).ask(_question(requirements), wait)
        self._remember((answer or "").strip().lower() in _YES, requirements)

    async def decide_async(self, requirements: list[str]) -> None:
        """Have somebody decide, without holding up the event loop. As `decide`."""
        if self._decide is not None:
            said: Any = await in_thread(self._decide, list(requirements))
            if hasattr(said, "__await__"):
                said = await cast("Awaitable[Any]", said)
            self._heed(said, requirements)
            return
        answer = await self._person(requirements).ask_async(_question(requirements))
        self._remember((answer or "").strip().lower() in _YES, requirements)

    def _person(self, requirements: list[str]) -> Answerer:
        person = find_person() if self.asks else None
        if person is None:
            raise _denied(requirements)
        return person

    def _heed(self, said: object, requirements: list[str]) -> None:
        if not isinstance(said, bool):
            raise UsageError(f"expected deps(requirements) to return True or False: got {said!r}")
        if not said:
            raise _denied(requirements)

    def _remember(self, said: bool, requirements: list[str]) -> None:  # noqa: FBT001  # private
        self._heed(said, requirements)
        self._requirements.update(requirements)


def _question(requirements: list[str]) -> InputRequest:
    packages = ", ".join(requirements)
    return InputRequest(
        f"a script of the model wants to install {packages}: may it? [y/N] ", asker="callslip"
    )


def _wait(descriptor: int | None) -> None:
    poll = select.poll()
    if descriptor is not None:
        poll.register(descriptor, select.POLLIN)
    poll.poll(100)


def _denied(requirements: list[str]) -> ScriptRefused:
    packages = ", ".join(requirements)
    return ScriptRefused(
        f"these packages are not approved: {packages}; do without them", "dependency_denied"
    )


def _requirement(text: str) -> str:
    """Return a requirement as scripts' declarations are written after they are read."""
    read = json.loads(_core.read_script(f"# dependencies = [{json.dumps(text)}]\npass\n"))
    if "refused" in read or len(read["dependencies"]) != 1:
        why = read.get("refused", {}).get("message", "it is none")
        raise UsageError(f"expected a package or a requirement in deps: got {text!r} ({why})")
    requirement: str = read["dependencies"][0]
    return requirement


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    return _normal(found[0]) if found else requirement


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
