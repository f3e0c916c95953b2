//! A run that a driver works on: its machine, its log and its claim on a store.
//!
//! Log before effect: the events that an input leads to are in the log, and handed to the store, before the driver is
//! given a command that follows from them. Where the store refuses them, the driver is given no command any more.

use crate::origin::Index;
use crate::part::Content;
use crate::protocol::grammar::Bounds;
use crate::run::{
    self, Command, Event, InputError, Limits, LoadError, ModelName, Origins, Record, ReplayError, RunMachine, Setup,
    Spent, TracedLog, line_with_texts, resume,
};
use crate::store::{Claim, Hold, Log, LogError, Position, RunKey, Store, StoreError, With};
use crate::ticket::TicketId;
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// Why a run could not be opened, or an input could not be logged.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields whose names say it have no comment")]
pub enum LiveError {
    /// The store could not be read, or did not take the events.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log in the store is not that of a run.
    #[error("run {run_id} can't be read: {cause}")]
    Unreadable {
        run_id: String,
        /// What is wrong with its log.
        cause: LoadError,
    },
    /// The log that is imported is not that of a run.
    #[error(transparent)]
    NoLog(#[from] LoadError),
    /// The run that is imported is in the store.
    #[error("run {run_id} is in this store already: call store.delete(…) before you import it again")]
    Present { run_id: String },
    /// The log can't be compacted.
    #[error("run {run_id} can't be compacted: {cause}")]
    NotCompacted {
        run_id: String,
        /// What is wrong with its log.
        cause: LoadError,
    },
    /// Another driver has worked on the run since it was released.
    #[error("another driver has resumed run {run_id} meanwhile: call store.run(…) to load it again")]
    Changed { run_id: String },
}

/// The claim on a run in a store. It is released on drop.
#[derive(Debug)]
struct Storage {
    store: Arc<dyn Store>,
    claim: Claim,
    /// Of the last records that were handed in.
    position: Position,
    /// Why the store refused records. The machine is ahead of the store from then on.
    failure: Option<StoreError>,
}

impl Storage {
    fn new(store: &Arc<dyn Store>, claim: Claim) -> Self {
        Self { store: Arc::clone(store), claim, position: Position::default(), failure: None }
    }

    fn append(&mut self, records: Vec<Arc<Record>>, with: With) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.store.append_with(self.claim.run_id(), records, with) {
            Ok(position) => self.position = position,
            Err(failure) => {
                self.failure = Some(failure.clone());
                return Err(failure);
            }
        }
        Ok(())
    }
}

/// A run of a store that was claimed, with its log.
#[derive(Debug)]
pub struct ClaimedRun {
    storage: Storage,
    records: Vec<Arc<Record>>,
}

impl ClaimedRun {
    /// Claims a run and reads its log. `above` is the run whose driver drives this one too.
    ///
    /// # Errors
    /// `UnderWay`, `Elsewhere`, `Below`, `NoSuchRun`, or the log can't be read.
    pub fn claim(store: &Arc<dyn Store>, run_id: &str, above: Option<&str>) -> Result<Self, StoreError> {
        let storage = Storage::new(store, store.claim(run_id, above)?);
        Ok(Self { storage, records: store.load(run_id)? })
    }

    fn next(&self) -> u64 {
        self.records.last().map_or(0, |last| last.seq + 1)
    }
}

/// Writes a log, with the bytes of its parts, to a store that does not have its run. Returns the run's id.
///
/// # Errors
/// `NoLog`, `Present`, or the store does not take it.
pub fn import(
    store: &dyn Store,
    records: Vec<Arc<Record>>,
    contents: Vec<Content>,
) -> Result<(String, Position), LiveError> {
    RunMachine::load(&records)?;
    let run_id = resume::start(&records)?.run_id.clone();
    let _claim = store.claim(&run_id, None)?;
    if store.exists(&run_id)? {
        return Err(LiveError::Present { run_id });
    }
    let position = store.append_with(&run_id, records, contents.into())?;
    Ok((run_id, position))
}

/// Replaces the events of a run by their fold.
///
/// # Errors
/// `UnderWay`, `NoSuchRun`, `NotCompacted`, or the store has failed.
pub fn compact(store: &dyn Store, run_id: &str) -> Result<(), LiveError> {
    let _claim = store.claim(run_id, None)?;
    let snapshot = run::compact(&store.load(run_id)?)
        .map_err(|cause| LiveError::NotCompacted { run_id: run_id.to_owned(), cause })?;
    Ok(store.compact(run_id, snapshot)?)
}

/// Claims a run that has not begun, with its key if it has one.
fn claim_new(store: &dyn Store, machine: &RunMachine, above: Option<&str>) -> Result<Claim, StoreError> {
    let start = machine.origin();
    let Some(key) = start.key.as_deref() else { return store.claim_new(machine.run_id(), above) };
    let owner = start.owner.as_deref().map(str::to_owned);
    store.claim_key(machine.run_id(), &RunKey { owner, agent: start.agent.clone(), key: key.to_owned() })
}

/// A run with its log and, if it is stored, its claim.
#[derive(Debug)]
pub struct LiveRun {
    machine: RunMachine,
    log: Log,
    storage: Option<Storage>,
    /// The bytes of parts that came in through this handle, by their hash.
    contents: HashMap<Arc<str>, Arc<[u8]>>,
    /// The store that has the bytes of the others.
    source: Option<Arc<dyn Store>>,
    /// The bytes that are stored with the next events.
    held: Vec<Content>,
    /// The messages of a shared store that the next events have.
    taking: Vec<i64>,
    /// The messages that the next event of a ticket has.
    outcomes: HashMap<TicketId, i64>,
    /// Where values come from that nobody had traced, as far as somebody has asked.
    traced: Option<Box<TracedLog>>,
}

impl LiveRun {
    /// A run without a store.
    fn of(machine: RunMachine, log: Log) -> Self {
        Self {
            machine,
            log,
            storage: None,
            contents: HashMap::new(),
            source: None,
            held: Vec::new(),
            taking: Vec::new(),
            outcomes: HashMap::new(),
            traced: None,
        }
    }

    /// A run that has not begun, claimed in the store that it is written to. `above` is the run whose driver drives this
    /// one too.
    ///
    /// # Errors
    /// `UnderWay`: a run of this id is claimed.
    pub fn new(machine: RunMachine, store: Option<&Arc<dyn Store>>, above: Option<&str>) -> Result<Self, StoreError> {
        let claim =
            |store: &Arc<dyn Store>| claim_new(&**store, &machine, above).map(|claim| Storage::new(store, claim));
        let storage = store.map(claim).transpose()?;
        Ok(Self { storage, source: store.cloned(), ..Self::of(machine, Log::default()) })
    }

    /// A run as its log has it, which is not written to, and the store that has the bytes of its parts.
    ///
    /// # Errors
    /// `Unreadable`: it is not the log of a run.
    pub fn load(run_id: &str, records: Vec<Arc<Record>>, source: Arc<dyn Store>) -> Result<Self, LiveError> {
        let machine =
            RunMachine::load(&records).map_err(|cause| LiveError::Unreadable { run_id: run_id.to_owned(), cause })?;
        Ok(Self { source: Some(source), ..Self::of(machine, Log::new(records)) })
    }

    /// A run that waits for a worker, and has not begun: its log is empty.
    pub fn queued(run_id: &str, agent: &str, task: &str, source: Arc<dyn Store>) -> Self {
        let machine = RunMachine::queued(run_id.to_owned(), agent.to_owned(), task.into());
        Self { source: Some(source), ..Self::of(machine, Log::default()) }
    }

    /// A claimed run, to be resumed.
    ///
    /// # Errors
    /// `Unreadable`: its log is not that of a run.
    pub fn open(claimed: ClaimedRun) -> Result<Self, LiveError> {
        let ClaimedRun { storage, records } = claimed;
        let run = Self::load(storage.claim.run_id(), records, Arc::clone(&storage.store))?;
        Ok(Self { storage: Some(storage), ..run })
    }

    /// The run that comes out when a log is replayed.
    ///
    /// # Errors
    /// It is not the log of a run, it was compacted, or another event comes out than the log has.
    pub fn replay(records: Vec<Arc<Record>>, contents: Vec<Content>) -> Result<Self, ReplayError> {
        let machine = run::replay(&records)?;
        let contents = contents.into_iter().map(|content| (content.sha256, content.data)).collect();
        Ok(Self { contents, ..Self::of(machine, Log::new(records)) })
    }

    /// Passes an input to the machine and logs the events that it leads to. Returns what the input returns, and the
    /// commands that follow. They may be carried out once the store is durable up to `position`.
    ///
    /// # Errors
    /// The store does not take the events, now or at an earlier input. No command is returned then or later.
    pub fn apply<T>(
        &mut self,
        now: f64,
        input: impl FnOnce(&mut RunMachine) -> T,
    ) -> Result<(T, Vec<Command>), LiveError> {
        self.apply_with(now, Vec::new(), input)
    }

    /// The same for an input with parts, and with their bytes, which are stored with the events.
    ///
    /// # Errors
    /// As for `apply`.
    pub fn apply_with<T>(
        &mut self,
        now: f64,
        mut contents: Vec<Content>,
        input: impl FnOnce(&mut RunMachine) -> T,
    ) -> Result<(T, Vec<Command>), LiveError> {
        let output = input(&mut self.machine);
        let commands = self.machine.commands(now);
        let records = self.machine.take_records();
        let mut taken = std::mem::take(&mut self.taking);
        if !self.outcomes.is_empty() {
            taken.extend(records.iter().filter_map(|record| self.outcomes.remove(&record.event.ended_ticket()?)));
        }
        if !records.is_empty() || !taken.is_empty() {
            contents.append(&mut self.held);
            let stored = self.storage.as_mut().map(|storage| (storage, records.clone()));
            self.log.append(records).map_err(|error| conflict(&self.machine, error))?;
            for Content { sha256, data } in &contents {
                self.contents.insert(Arc::clone(sha256), Arc::clone(data));
            }
            if let Some((storage, records)) = stored {
                storage.append(records, With { contents, taken })?;
            }
        }
        Ok((output, commands))
    }

    /// Takes messages of a shared store: they are gone from there with the events of the next input.
    pub fn take_messages(&mut self, ids: Vec<i64>) {
        self.taking.extend(ids);
    }

    /// Takes the message with the outcome of a ticket: it is gone with the event that has that outcome, and not before.
    pub fn take_outcome(&mut self, ticket: TicketId, id: i64) {
        self.outcomes.insert(ticket, id);
    }

    /// Draws the limits that runs share from those of runs that are driven elsewhere, the nearest first.
    pub fn join_apart(&mut self, depth: u32, above: Vec<Limits>) {
        self.machine.join_apart(depth, above);
    }

    /// At least these amounts were spent: by this run with those below it, by the run above it, and so on.
    pub fn spent_at_least(&mut self, spent: &[Spent]) {
        self.machine.spent_at_least(spent);
    }

    fn claim(&self) -> Option<&Claim> {
        self.storage.as_ref().map(|storage| &storage.claim)
    }

    /// How well its claim on the store holds.
    pub fn claim_hold(&self) -> Hold {
        self.claim().map_or(Hold::Sure, Claim::hold)
    }

    /// Adds what another process has written to the log since. The run must be one that is only read. If the next events
    /// were compacted meanwhile, the log begins anew there.
    ///
    /// # Errors
    /// `Unreadable`: they are not the next events of this run.
    pub fn follow(&mut self, records: Vec<Arc<Record>>) -> Result<(), LiveError> {
        let run_id = self.machine.run_id().to_owned();
        let is_folded = records.first().is_some_and(|first| matches!(first.event, Event::Compacted { .. }));
        if is_folded || self.log.records().is_empty() {
            let machine = RunMachine::load(&records).map_err(|cause| LiveError::Unreadable { run_id, cause })?;
            self.machine.replace_by(machine);
            self.log = Log::new(records);
            return Ok(());
        }
        self.machine.follow(&records).map_err(|cause| LiveError::Unreadable { run_id, cause })?;
        self.log.append(records).map_err(|error| conflict(&self.machine, error))?;
        Ok(())
    }

    /// Holds the bytes of an earlier conversation's parts, which are stored with the first events.
    pub fn hold(&mut self, contents: Vec<Content>) {
        self.held = contents;
    }

    /// Draws the limits that runs share from those of the run above.
    pub fn join(&mut self, above: &mut Self) {
        let account = above.machine.account();
        self.machine.inherit(&mut above.machine);
        self.machine.join(above.machine.depth().saturating_add(1), &account);
    }

    /// Gives a run that has not begun its instructions, and the prompt that has them.
    pub fn instruct(&mut self, instructions: &str, prompt: &str) {
        self.machine.instruct(instructions, prompt);
    }

    /// What it has spent, whether it has read untrusted results, and the texts in which its answer is looked up.
    pub fn ended(&mut self) -> (Spent, bool, Arc<Index>) {
        let texts = self.machine.texts_of_answer();
        (self.machine.state().spent(), self.machine.state().conversation.untrusted, texts)
    }

    /// A run that this call has started has read an untrusted result.
    pub fn read_untrusted(&mut self, ticket: TicketId) {
        self.machine.read_untrusted(ticket);
    }

    /// Names the trace that a run begins in, before it does.
    pub fn trace_as(&mut self, traceparent: &str) {
        self.machine.trace_as(traceparent);
    }

    /// Names the model that is asked from now on.
    pub fn use_model(&mut self, model: ModelName) {
        self.machine.use_model(model);
    }

    /// The coming reply is written under a grammar with these bounds.
    pub fn bound_reply(&mut self, bounds: Option<Bounds>) {
        self.machine.bound_reply(bounds);
    }

    /// An agent with this setup continues the run, or reads its result. Returns whether both have the same calls.
    ///
    /// # Errors
    /// `Incompatible`; then the claim is given up.
    pub fn adopt(&mut self, setup: &Setup, goes_on: bool) -> Result<bool, InputError> {
        let adopted = self.machine.adopt(setup, goes_on);
        if adopted.is_err() {
            self.release();
        }
        adopted
    }

    /// Commands are carried out again.
    pub fn attend(&mut self) {
        self.machine.attend();
    }

    /// Gives up the claim: another driver can resume the run.
    pub fn release(&mut self) {
        self.machine.leave();
        self.storage = None;
    }

    /// Claims a run again that was released.
    ///
    /// # Errors
    /// `Changed`: another driver has written to it meanwhile.
    pub fn reclaim(&mut self, claimed: ClaimedRun) -> Result<(), LiveError> {
        if claimed.next() != self.log.next() {
            return Err(LiveError::Changed { run_id: self.machine.run_id().to_owned() });
        }
        self.storage = Some(claimed.storage);
        Ok(())
    }

    /// The bytes of a part by their hash, if they came in through this handle.
    pub fn content(&self, sha256: &str) -> Option<Arc<[u8]>> {
        self.contents.get(sha256).cloned()
    }

    /// The store that has the bytes of the other parts.
    pub fn source(&self) -> Option<Arc<dyn Store>> {
        self.source.clone()
    }

    /// The state machine, to be read: inputs go through `apply`.
    pub fn machine(&self) -> &RunMachine {
        &self.machine
    }

    /// Where the values of a call come from: as the log has it, or else traced now.
    pub fn origins(&mut self, ticket: TicketId) -> Origins {
        let known = self.machine.state().calls.tickets.get(ticket).filter(|ticket| !ticket.origins.is_empty());
        if let Some(known) = known {
            return known.origins.to_vec();
        }
        let records = self.log.records();
        let first = records.first().map_or(0, |first| first.seq);
        let traced = self.traced.take().filter(|traced| traced.begins_at(first));
        let traced = traced.map_or_else(|| TracedLog::new(&self.machine, records).map(Box::new), Ok);
        // A log that was loaded can be read again.
        let Ok(mut traced) = traced else { return Origins::new() };
        let found = traced.read(&self.machine, records).is_ok().then(|| traced.origins(ticket).cloned()).flatten();
        self.traced = Some(traced);
        found.unwrap_or_default()
    }

    /// Says whether its driver has somebody to ask for approval.
    pub fn set_can_ask(&mut self, can_ask: bool) {
        self.machine.set_can_ask(can_ask);
    }

    /// Says how sure the model of the coming reply was of the first tool that it calls: a probability.
    pub fn note_certainty(&mut self, certainty: f64) {
        self.machine.note_certainty(certainty);
    }

    /// The events so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The events from `seq` on as lines; `texts` adds narration, thoughts and answers.
    ///
    /// # Errors
    /// A record has no JSON form, which none is without.
    pub fn lines_since(&self, seq: usize, texts: bool) -> serde_json::Result<Vec<String>> {
        let (records, since) = (self.log.records(), self.log.since(seq));
        if !texts {
            return since.iter().map(serde_json::to_string).collect();
        }
        let protocol = &*self.machine.setup().protocol;
        let lines = records.len() - since.len()..records.len();
        lines.filter_map(|position| line_with_texts(records, position, protocol).transpose()).collect()
    }

    /// Up to where its store must be durable before the commands are carried out; 0 without a store.
    pub fn position(&self) -> Position {
        self.storage.as_ref().map_or_else(Position::default, |storage| storage.position)
    }

    /// Whether everything up to `position` is durable in its own store, which may not be the one that is open now: after a
    /// failure a file is opened anew.
    ///
    /// # Errors
    /// That store has failed.
    pub fn is_durable(&self) -> Result<bool, StoreError> {
        self.storage.as_ref().map_or(Ok(true), |storage| Ok(storage.store.durable()? >= storage.position))
    }

    /// Whether its store has failed: later events are not stored.
    pub fn has_lost_its_store(&self) -> bool {
        let lost = |storage: &Storage| matches!(storage.claim.hold(), Hold::Lost(_));
        let failed = |storage: &Storage| storage.failure.is_some() || lost(storage) || storage.store.failed().is_some();
        self.storage.as_ref().is_some_and(failed)
    }
}

fn conflict(machine: &RunMachine, error: LogError) -> StoreError {
    StoreError::Conflict { run_id: machine.run_id().to_owned(), expected: error.expected, got: error.got }
}
