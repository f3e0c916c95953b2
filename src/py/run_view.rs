//! What can be read from one run: its state, log, transcript and parts.

use super::error::CoreResult;
use super::lock::lock;
use super::outcome::PyOutcome;
use super::part::{PyPart, split_all};
use super::protocol::{PyBounds, PyGrammar};
use super::rows::{MessageOfRun, PyEnding, PyMessage, PyOpenTask, PyShortened, PyTicketRow, PyUsage};
use super::setup::{Grammars, PySetup, Situation};
use super::toolset::PyToolSet;
use crate::live::LiveRun;
use crate::origin::Index;
use crate::protocol::grammar::Bounds;
use crate::reply::Value;
use crate::run::{Phase, Spent, write_log};
use crate::store::Hold;
use crate::ticket::{Outcome, TicketId};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// One run with its log: the part that is read, and changes nothing.
#[pyclass(name = "RunView", module = "callslip._core", frozen, subclass)]
pub(super) struct PyRunView {
    run: Mutex<LiveRun>,
    /// Those of the setup of its agent, once that is known.
    grammars: OnceLock<Grammars>,
}

impl PyRunView {
    /// What it has spent, whether it has read untrusted results, and the texts in which its answer is looked up.
    pub(super) fn ended(&self) -> CoreResult<(Spent, bool, Arc<Index>)> {
        Ok(self.lock()?.ended())
    }

    pub(super) fn new_of(run: LiveRun, grammars: Option<Grammars>) -> Self {
        Self { run: Mutex::new(run), grammars: grammars.map_or_else(OnceLock::new, OnceLock::from) }
    }

    pub(super) fn lock(&self) -> CoreResult<MutexGuard<'_, LiveRun>> {
        lock(&self.run)
    }

    /// As `lock`, in a thread that is detached.
    pub(super) fn lock_detached(&self) -> CoreResult<MutexGuard<'_, LiveRun>> {
        Ok(self.run.lock()?)
    }

    /// Its id.
    pub(super) fn id(&self) -> CoreResult<String> {
        Ok(self.lock()?.machine().run_id().to_owned())
    }

    /// Sets the grammars of the agent's setup. A run is adopted once: later ones change nothing.
    pub(super) fn use_grammars(&self, grammars: &Grammars) {
        let _ = self.grammars.set(grammars.clone());
    }
}

#[pymethods]
impl PyRunView {
    /// The program's own instructions; `None` if it has none.
    #[getter]
    fn instructions(&self) -> CoreResult<Option<String>> {
        Ok(self.lock()?.machine().setup().instructions.as_deref().map(str::to_owned))
    }

    /// What keeps an agent with this setup from going on with the run, each difference in words.
    fn differences(&self, setup: &PySetup) -> CoreResult<Vec<String>> {
        Ok(self.lock()?.machine().compare(&setup.setup).differences)
    }

    /// The tools that it was set up with.
    #[getter]
    fn tools(&self) -> CoreResult<PyToolSet> {
        Ok(PyToolSet { tools: Arc::clone(&self.lock()?.machine().setup().tools) })
    }

    /// Its limits, as JSON text.
    #[getter]
    fn limits(&self) -> CoreResult<String> {
        Ok(serde_json::to_string(&self.lock()?.machine().setup().limits)?)
    }

    /// How many levels of runs may be below it by its own limits; `None` for any number.
    #[getter]
    fn levels(&self) -> CoreResult<Option<u32>> {
        Ok(self.lock()?.machine().setup().limits.depth)
    }

    /// Up to where its store must be durable before the commands are carried out; 0 without a store.
    #[getter]
    fn position(&self) -> CoreResult<u64> {
        Ok(self.lock()?.position().get())
    }

    /// Whether its store has failed: later events are not stored.
    #[getter]
    fn unwritten(&self) -> CoreResult<bool> {
        Ok(self.lock()?.has_lost_its_store())
    }

    /// Whether its own store has written down all its events. Raises `StoreError` once that store has failed.
    fn is_durable(&self) -> CoreResult<bool> {
        Ok(self.lock()?.is_durable()?)
    }

    /// Whether its claim on the store is sure to hold just now. Raises `TakenOver` or `NoLease` once it is lost.
    fn check_claim(&self) -> CoreResult<bool> {
        match self.lock()?.claim_hold() {
            Hold::Sure => Ok(true),
            Hold::Unconfirmed => Ok(false),
            Hold::Lost(reason) => Err(reason.into()),
        }
    }

    /// The open tickets for which something is under way, with whether another run works on it; `None` while the model or
    /// the program is asked, or the run is over. Those that await a decision are not among them.
    #[getter]
    fn under_way(&self) -> CoreResult<Option<Vec<(u32, bool)>>> {
        let under_way = self.lock()?.machine().under_way();
        let plain =
            |tickets: Vec<(TicketId, bool)>| tickets.into_iter().map(|(ticket, task)| (ticket.0, task)).collect();
        Ok(under_way.map(plain))
    }

    /// Raises `UsageError` if a call does not await approval.
    fn check_awaits_approval(&self, ticket: u32) -> CoreResult<()> {
        Ok(self.lock()?.machine().check_awaits_approval(TicketId(ticket))?)
    }

    /// Raises `UsageError` if the tool of a call does not take these arguments, as JSON text.
    fn check_edited(&self, ticket: u32, arguments: &str) -> CoreResult<()> {
        let arguments: Value = serde_json::from_str(arguments)?;
        self.lock()?.machine().check_edited(TicketId(ticket), &arguments)?;
        Ok(())
    }

    /// Whether the program is still to decide if a call needs approval.
    fn is_checking_approval(&self, ticket: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().is_checking_approval(TicketId(ticket)))
    }

    /// Whether a call awaits approval.
    fn awaits_approval(&self, ticket: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().awaits_approval(TicketId(ticket)))
    }

    /// Raises `UsageError` if a call can't be answered from outside, or not with this outcome.
    fn check_answer(&self, py: Python<'_>, ticket: u32, outcome: &PyOutcome) -> CoreResult<()> {
        let outcome = outcome.to_core(py)?;
        self.lock()?.machine().check_answer(TicketId(ticket), outcome)?;
        Ok(())
    }

    /// Raises `UsageError` if a call awaits no result from outside.
    fn check_awaits_result(&self, ticket: u32) -> CoreResult<()> {
        Ok(self.lock()?.machine().check_awaits_result(TicketId(ticket))?)
    }

    /// Whether a call awaits a result from outside.
    fn awaits_result(&self, ticket: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().awaits_result(TicketId(ticket)))
    }

    /// Whether a ticket has ended without a result: its run was cancelled, or did not wait for it.
    fn has_given_up(&self, ticket: u32) -> CoreResult<bool> {
        let run = self.lock()?;
        let ticket = run.machine().state().calls.tickets.get(TicketId(ticket));
        Ok(ticket.and_then(|ticket| ticket.outcome.as_ref()).is_some_and(Outcome::is_cancelled))
    }

    /// Whether a ticket is open.
    fn is_open(&self, ticket: u32) -> CoreResult<bool> {
        let run = self.lock()?;
        Ok(run.machine().state().calls.tickets.get(TicketId(ticket)).is_some_and(|ticket| ticket.outcome.is_none()))
    }

    /// Tasks that other runs work on.
    fn open_tasks(&self) -> CoreResult<Vec<PyOpenTask>> {
        Ok(self.lock()?.machine().open_tasks().into_iter().map(PyOpenTask::from).collect())
    }

    /// How many runs are above it.
    #[getter]
    fn depth(&self) -> CoreResult<u32> {
        Ok(self.lock()?.machine().depth())
    }

    /// Its id.
    #[getter]
    fn run_id(&self) -> CoreResult<String> {
        self.id()
    }

    /// How it begins or has begun, as JSON: the first event of its log without the name of its kind.
    #[getter]
    fn origin(&self) -> CoreResult<String> {
        Ok(serde_json::to_string(self.lock()?.machine().origin())?)
    }

    /// A tool of the run as it was set up, as JSON; `None` if it has no such tool.
    fn tool_spec(&self, name: &str) -> CoreResult<Option<String>> {
        let spec = self.lock()?.machine().setup().tools.get(name).map(serde_json::to_string);
        Ok(spec.transpose()?)
    }

    /// What the user asked for.
    #[getter]
    fn task(&self) -> CoreResult<String> {
        Ok(self.lock()?.machine().task().to_owned())
    }

    /// Whose data it is.
    #[getter]
    fn owner(&self) -> CoreResult<Option<String>> {
        Ok(self.lock()?.machine().origin().owner.as_deref().map(str::to_owned))
    }

    /// The name of the agent that it began with.
    #[getter]
    fn agent(&self) -> CoreResult<String> {
        Ok(self.lock()?.machine().origin().agent.clone())
    }

    /// Whether this is its task, with marks for its parts.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn has_task(&self, py: Python<'_>, text: &str, parts: Vec<PyPart>) -> CoreResult<bool> {
        let (parts, _) = split_all(py, &parts)?;
        Ok(self.lock()?.machine().has_task(text, &parts))
    }

    /// Whether it has a message with this key, which is this one. Raises `KeyTaken` if that is another one.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn was_said(&self, py: Python<'_>, text: &str, parts: Vec<PyPart>, key: &str) -> CoreResult<bool> {
        let (parts, _) = split_all(py, &parts)?;
        Ok(self.lock()?.machine().was_said(text, &parts, key)?)
    }

    /// How many events its log has, those that were compacted among them.
    #[getter]
    fn event_count(&self) -> CoreResult<u64> {
        Ok(self.lock()?.log().next())
    }

    /// What the model is shown no longer; `None` if it is shown everything.
    #[getter]
    fn shortened(&self) -> CoreResult<Option<PyShortened>> {
        Ok(self.lock()?.machine().state().conversation.shortened.as_deref().map(PyShortened::from))
    }

    /// The position of the message with the user's last words; 0 for the task.
    #[getter]
    fn said_at(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().state().conversation.said_at)
    }

    /// Whether calls of the reply that is still arriving were started.
    #[getter]
    fn has_early_calls(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().has_early_calls())
    }

    /// Whether tokens or cost are limited, here or above.
    #[getter]
    fn limits_usage(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().limits_usage())
    }

    /// How many attempts at a call were made, the one that is waited for among them.
    fn attempts(&self, ticket: u32) -> CoreResult<u32> {
        Ok(self.lock()?.machine().attempts(TicketId(ticket)))
    }

    /// Whether the answer of this turn is still to be checked.
    fn is_checking(&self, turn: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().is_checking(turn))
    }

    /// Whether its wall time is limited.
    #[getter]
    fn is_timed(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().is_timed())
    }

    /// Unix seconds of the last event.
    #[getter]
    fn last_at(&self) -> CoreResult<f64> {
        Ok(self.lock()?.machine().state().spending.last_at())
    }

    /// Unix seconds at which `time_out` is due; `None` without a limit, and while nothing works on the run.
    #[getter]
    fn deadline(&self) -> CoreResult<Option<f64>> {
        Ok(self.lock()?.machine().deadline())
    }

    /// Unix seconds at which the first call fails that awaits a result from outside; `None` if none does.
    #[getter]
    fn first_expiry(&self) -> CoreResult<Option<f64>> {
        Ok(self.lock()?.machine().first_expiry())
    }

    /// How many messages the transcript has.
    #[getter]
    fn message_count(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().state().conversation.messages.len())
    }

    /// One message of the transcript.
    fn message(&self, py: Python<'_>, position: usize) -> CoreResult<PyMessage> {
        let message = MessageOfRun::of(&*self.lock()?, position)?;
        Ok(message.into_row(py)?)
    }

    /// The tools of each request of a native run, as the JSON text of an array.
    fn tool_forms(&self) -> CoreResult<String> {
        Ok(serde_json::to_string(&self.lock()?.machine().tool_forms())?)
    }

    /// The tool choice of the next request: mode, named tool, and parallel calls.
    fn tool_choice(&self) -> CoreResult<(&'static str, Option<&'static str>, bool)> {
        Ok(self.lock()?.machine().tool_choice().into_parts())
    }

    /// The list of all tickets, as a message of the ticket protocol has it.
    fn ticket_list(&self) -> CoreResult<String> {
        let run = self.lock()?;
        let state = run.machine().state();
        Ok(state.calls.tickets.to_json(state.conversation.own_task()))
    }

    /// The open tickets on which somebody outside of the run is to decide, and those for which something is under way, at
    /// one moment; `None` as for `under_way`.
    #[getter]
    fn waits_for(&self) -> CoreResult<Option<(Vec<u32>, Vec<u32>)>> {
        let run = self.lock()?;
        let Some(under_way) = run.machine().under_way() else { return Ok(None) };
        let awaiting = run.machine().awaiting_decision().into_iter().map(|ticket| ticket.0).collect();
        Ok(Some((awaiting, under_way.into_iter().map(|(ticket, _)| ticket.0).collect())))
    }

    /// The run above it, and the ticket there that it works for; `None` at the top.
    #[getter]
    fn parent(&self) -> CoreResult<Option<(String, u32)>> {
        let run = self.lock()?;
        let parent = run.machine().origin().parent.as_ref();
        Ok(parent.map(|parent| (parent.run_id.clone(), parent.ticket.0)))
    }

    /// The open tickets on which somebody outside of the run is to decide, oldest first.
    #[getter]
    fn awaiting_decision(&self) -> CoreResult<Vec<u32>> {
        Ok(self.lock()?.machine().awaiting_decision().into_iter().map(|ticket| ticket.0).collect())
    }

    /// The tickets that are new to a reader who knows the first ones, as they were after so many changes; and how many
    /// changes there were by now.
    fn ticket_news(&self, known: usize, changes: usize) -> CoreResult<(Vec<PyTicketRow>, usize)> {
        let run = self.lock()?;
        let tickets = &run.machine().state().calls.tickets;
        let rows = tickets.news(known, changes).map(|ticket| PyTicketRow::of_run(&run, ticket)).collect();
        Ok((rows, tickets.change_count()))
    }

    /// The tickets that have ended, in the order in which they did, without the first `known` of them.
    fn ended_since(&self, known: usize) -> CoreResult<Vec<u32>> {
        let run = self.lock()?;
        let ended = run.machine().state().calls.tickets.ended();
        Ok(ended.get(known..).unwrap_or_default().iter().map(|ticket| ticket.0).collect())
    }

    /// How many tickets the run has opened.
    #[getter]
    fn ticket_count(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().state().calls.tickets.len())
    }

    /// How the run ended; `None` until then.
    #[getter]
    fn ending(&self, py: Python<'_>) -> CoreResult<Option<PyEnding>> {
        let (ending, limit, at_calls) = {
            let run = self.lock()?;
            let position = &run.machine().state().position;
            (position.ending.clone(), position.limit, run.machine().ended_at_calls())
        };
        Ok(ending.map(|ending| PyEnding::new(py, ending, limit, at_calls)).transpose()?)
    }

    /// How many messages stand between the prompt and the task: those of an example, and an earlier conversation.
    #[getter]
    fn examples(&self) -> CoreResult<usize> {
        Ok(self.lock()?.machine().messages_before_task())
    }

    /// The message without the results that were loaded into it; `None` if it has none, or only very short ones.
    fn short<'py>(&self, py: Python<'py>, position: usize) -> CoreResult<Option<Bound<'py, PyString>>> {
        let message = self.lock()?.machine().state().conversation.messages.get(position).cloned();
        let short = message.and_then(|message| message.short);
        Ok(short.map(|short| PyString::new(py, &short)))
    }

    /// What its replies have cost.
    #[getter]
    fn usage(&self) -> CoreResult<PyUsage> {
        Ok(self.lock()?.machine().state().spending.usage.into())
    }

    /// What they have cost since the user's last task.
    #[getter]
    fn turn_usage(&self) -> CoreResult<PyUsage> {
        Ok(self.lock()?.machine().state().spending.turn_usage().into())
    }

    /// What all have cost, with those of the runs below it that have ended.
    #[getter]
    fn total_usage(&self) -> CoreResult<PyUsage> {
        Ok(self.lock()?.machine().state().spent().usage.into())
    }

    /// How often the model was asked.
    #[getter]
    fn turn(&self) -> CoreResult<u32> {
        Ok(self.lock()?.machine().state().position.turn)
    }

    /// How many replies broke the protocol.
    #[getter]
    fn violations(&self) -> CoreResult<u32> {
        Ok(self.lock()?.machine().state().position.violations_total)
    }

    /// The log from `seq` on, one JSON text an event; `texts` adds narration, thoughts and answers.
    #[pyo3(signature = (seq = 0, *, texts = false))]
    fn records<'py>(&self, py: Python<'py>, seq: usize, texts: bool) -> CoreResult<Bound<'py, PyList>> {
        let lines = self.lock()?.lines_since(seq, texts)?;
        Ok(PyList::new(py, lines)?)
    }

    /// The log as lines, with the bytes of its parts.
    fn export_lines(&self, py: Python<'_>) -> CoreResult<Vec<String>> {
        // Not under the lock: a store may have to write first.
        let (records, parts) = {
            let run = self.lock()?;
            (run.log().records().to_vec(), all_parts(&run))
        };
        write_log(&records, |sha256| {
            let part = parts.iter().find(|part| *part.part().sha256 == *sha256);
            part.map_or(Ok(None), |part| part.stored_bytes(py))
        })
    }

    /// Whether its model has read untrusted results, or it began with what was written after such.
    #[getter]
    fn untrusted(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().state().conversation.untrusted)
    }

    /// A run that this call has started has read an untrusted result.
    fn read_untrusted(&self, ticket: u32) -> CoreResult<()> {
        self.lock()?.read_untrusted(TicketId(ticket));
        Ok(())
    }

    /// Whether a run that begins in this call begins with what was written after untrusted results.
    fn begins_untrusted(&self, ticket: u32) -> CoreResult<bool> {
        Ok(self.lock()?.machine().begins_untrusted(TicketId(ticket)))
    }

    /// Whether any message or result has images or files.
    #[getter]
    fn has_parts(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().state().conversation.has_parts)
    }

    /// All its images and files.
    fn parts(&self) -> CoreResult<Vec<PyPart>> {
        Ok(all_parts(&*self.lock()?))
    }

    /// The grammar of the next reply, with at most so many characters of thoughts, within the bounds of the model.
    fn grammar(&self, thoughts: Option<u32>, bounds: Option<PyBounds>) -> CoreResult<PyGrammar> {
        let (mut run, bounds) = (self.lock()?, bounds.map(Bounds::from));
        run.bound_reply(bounds);
        let situation = Situation { moves: run.machine().possible_moves(), thoughts, bounds };
        let make = |situation: &Situation| run.machine().grammar(&situation.moves, thoughts, bounds);
        let grammars = self.grammars.get_or_init(Grammars::default);
        Ok(PyGrammar { grammar: grammars.get(situation, make)? })
    }

    /// Whether the run is over.
    #[getter]
    fn finished(&self) -> CoreResult<bool> {
        Ok(self.lock()?.machine().state().position.phase == Phase::Finished)
    }
}

fn all_parts(run: &LiveRun) -> Vec<PyPart> {
    run.machine().state().parts().into_iter().map(|part| PyPart::of_run(run, part)).collect()
}
