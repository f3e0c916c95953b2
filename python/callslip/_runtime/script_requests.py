"""Steps of an interpreter in the place of requests to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from callslip._runtime.model_requests import ModelRequests
from callslip._scripts.engine import Function
from callslip._scripts.live import LiveScript

if TYPE_CHECKING:
    from callslip._runtime.session import RunSession
    from callslip._scripts.model import EngineModel
    from callslip.models._call import ModelCall

__all__ = ["ScriptRequests", "requests_of"]


def requests_of(session: RunSession) -> ModelRequests:
    """Return the requests of a run: to its model, or to the interpreter of its script."""
    if session.setup.protocol.runs_code:
        return ScriptRequests(session)
    return ModelRequests(session.run, session.agent)


class ScriptRequests(ModelRequests):
    """The steps of the script of one run. The interpreter ends when the run is left."""

    __slots__ = ("_session",)

    def __init__(self, session: RunSession) -> None:
        super().__init__(session.run, session.agent)
        self._session = session

    def send(self, call: ModelCall | None = None) -> object:  # noqa: ARG002  # there is one
        """Take the step that is due. Returns its line.

        Raises:
            RunCancelled: The run was left.
            Exception: The interpreter has failed.
        """
        return self._session.resource(self, self._make).reply()

    def _make(self) -> LiveScript:
        session = self._session
        model = cast("EngineModel", session.agent._model.model)
        functions = [Function(tool.name, tool.parameters) for tool in session.setup.toolbox]
        return LiveScript(session.core, model.engine, functions)

    def shorten_after(self, session: RunSession, error: BaseException) -> bool:  # noqa: ARG002
        """Return false: there are no messages to shorten."""
        return False
