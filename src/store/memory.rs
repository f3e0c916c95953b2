//! All runs of a process, in memory: the default, and the model that the `SQLite` store is tested against.

use super::claim::{Claim, Claims};
use super::projection::{self, TicketChange};
use super::row::{RunFilter, RunRow, TicketFilter, TicketRow};
use super::{Log, LogError, Position, RunKey, Store, StoreError, Wake, With};
use crate::run::{Event, Record};
use crate::ticket::TicketId;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The logs of runs, for as long as the process lives.
#[derive(Debug, Default)]
pub struct MemoryStore {
    claims: Arc<Claims>,
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    runs: HashMap<String, Run>,
    keys: HashMap<RunKey, String>,
    /// The tickets that others know by a key, by their runs.
    answer_keys: HashMap<RunKey, BTreeSet<(String, TicketId)>>,
    position: u64,
    /// The number of the next run, which orders runs with the same start time.
    next: u64,
    closed: bool,
}

#[derive(Debug)]
struct Run {
    number: u64,
    log: Log,
    row: RunRow,
    tickets: BTreeMap<TicketId, TicketRow>,
    /// The bytes of its parts, by their hash.
    contents: HashMap<Arc<str>, Arc<[u8]>>,
}

impl Run {
    fn add(&mut self, record: &Record, first: bool) {
        self.row.add(record, first);
        match projection::tickets(&self.row.run_id, record, first) {
            TicketChange::None => {}
            TicketChange::Opened(row) => {
                self.tickets.entry(row.ticket).or_insert(*row);
            }
            TicketChange::Completed { ticket, outcome, parts, untrusted } => {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.distrust(untrusted);
                    row.complete(outcome, parts, record.at);
                }
            }
            TicketChange::Filled { ticket, arguments, parked, is_free, untrusted } => {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.distrust(untrusted);
                    row.arguments = Some(arguments);
                    row.parked = parked;
                    row.free(is_free);
                }
            }
            TicketChange::Attempted { ticket, attempts } => {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.attempts = attempts;
                }
            }
            TicketChange::ApprovalChecked { ticket, parked, reason } => {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.parked = parked;
                    row.approval_reason = reason.map(str::to_owned);
                    row.free(!parked);
                }
            }
            TicketChange::Approved { ticket, arguments } => {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.parked = false;
                    row.free(true);
                    row.arguments = arguments.or(row.arguments.take());
                }
            }
            TicketChange::Pending { ticket, key, external } => {
                if let Some(row) = self.tickets.get_mut(&ticket) {
                    row.pend(key, external);
                }
            }
            TicketChange::All(rows) => self.tickets = rows.into_iter().map(|row| (row.ticket, row)).collect(),
        }
    }
}

impl Run {
    /// The keys of its tickets, for answers from outside.
    fn answer_keys(&self) -> impl Iterator<Item = (RunKey, TicketId)> {
        self.tickets.values().filter_map(|ticket| {
            let (owner, agent) = (self.row.owner.clone(), self.row.agent.clone());
            Some((RunKey { owner, agent, key: ticket.answer_key.clone()? }, ticket.ticket))
        })
    }
}

impl Contents {
    /// These runs that there are, with all runs that were started in them.
    fn trees(&self, roots: impl IntoIterator<Item = String>) -> HashSet<String> {
        let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
        for (id, run) in &self.runs {
            if let Some(parent) = &run.row.parent {
                children.entry(&parent.run_id).or_default().push(id);
            }
        }
        let mut found = HashSet::new();
        let mut left: Vec<String> = roots.into_iter().collect();
        while let Some(id) = left.pop() {
            if !found.contains(&id) {
                left.extend(children.get(&*id).into_iter().flatten().map(|child| (*child).to_owned()));
                found.insert(id);
            }
        }
        found.retain(|id| self.runs.contains_key(id));
        found
    }

    fn remove(&mut self, run_ids: &HashSet<String>) -> usize {
        self.position += 1;
        let before = self.runs.len();
        self.answer_keys.retain(|_, tickets| {
            tickets.retain(|(run_id, _)| !run_ids.contains(run_id));
            !tickets.is_empty()
        });
        for removed in run_ids.iter().filter_map(|id| self.runs.remove(id)) {
            if let Some(key) = RunKey::of(&removed.row)
                && self.keys.get(&key) == Some(&removed.row.run_id)
            {
                self.keys.remove(&key);
            }
        }
        before - self.runs.len()
    }

    fn open(&mut self) -> Result<&mut Self, StoreError> {
        if self.closed { Err(StoreError::Closed) } else { Ok(self) }
    }
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn conflict(run_id: &str, error: LogError) -> StoreError {
    StoreError::Conflict { run_id: run_id.to_owned(), expected: error.expected, got: error.got }
}

fn no_such_run(run_id: &str) -> StoreError {
    StoreError::NoSuchRun { run_id: run_id.to_owned() }
}

impl Store for MemoryStore {
    fn claim(&self, run_id: &str, _: Option<&str>) -> Result<Claim, StoreError> {
        self.claims.claim(run_id)
    }

    fn claim_key(&self, run_id: &str, key: &RunKey) -> Result<Claim, StoreError> {
        let claim = self.claims.claim_key(run_id, key)?;
        match self.lock().keys.get(key) {
            Some(other) => Err(StoreError::KeyTaken { run_id: other.clone() }),
            None => Ok(claim),
        }
    }

    fn run_with(&self, key: &RunKey) -> Result<Option<String>, StoreError> {
        let claimed = self.claims.run_with(key);
        Ok(claimed.or_else(|| self.lock().keys.get(key).cloned()))
    }

    fn ticket_with(&self, key: &RunKey) -> Result<Option<(String, TicketId)>, StoreError> {
        let stored = self.lock();
        let tickets = stored.answer_keys.get(key).into_iter().flatten();
        let opened = tickets.filter_map(|known| {
            let run = stored.runs.get(&known.0)?;
            let row = run.tickets.get(&known.1)?;
            (row.answer_key.as_ref() == Some(&key.key)).then_some((row.opened_at, run.number, known))
        });
        let first =
            opened.min_by(|one, other| one.0.total_cmp(&other.0).then((one.1, &one.2.1).cmp(&(other.1, &other.2.1))));
        Ok(first.map(|(.., known)| known.clone()))
    }

    fn is_claimed(&self, run_id: &str) -> bool {
        self.claims.has(run_id)
    }

    fn append_with(&self, run_id: &str, records: Vec<Arc<Record>>, with: With) -> Result<Position, StoreError> {
        let mut stored = self.lock();
        let stored = stored.open()?;
        let Some(at) = records.first().map(|first| first.at) else { return Ok(Position(stored.position)) };
        let is_new = !stored.runs.contains_key(run_id);
        let number = stored.next;
        let run = stored.runs.entry(run_id.to_owned()).or_insert_with(|| Run {
            number,
            log: Log::default(),
            row: RunRow::new(run_id, at),
            tickets: BTreeMap::new(),
            contents: HashMap::new(),
        });
        if let Err(error) = run.log.append(records.clone()) {
            if is_new {
                stored.runs.remove(run_id);
            }
            return Err(conflict(run_id, error));
        }
        let mut first = is_new;
        for record in &records {
            run.add(record, first);
            first = false;
        }
        let comes_from_outside = |record: &Arc<Record>| matches!(&record.event, Event::TicketPending { .. });
        if is_new || records.iter().any(comes_from_outside) {
            for (key, ticket) in run.answer_keys() {
                stored.answer_keys.entry(key).or_default().insert((run_id.to_owned(), ticket));
            }
        }
        if let Some(key) = RunKey::of(&run.row).filter(|_| is_new) {
            match stored.keys.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(run_id.to_owned());
                }
                // An imported run must not take over a key that is in use.
                Entry::Occupied(_) => run.row.key = None,
            }
        }
        run.contents.extend(with.contents.into_iter().map(|content| (content.sha256, content.data)));
        stored.next += u64::from(is_new);
        stored.position += 1;
        Ok(Position(stored.position))
    }

    fn wait(&self, _: Position, _: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn durable(&self) -> Result<Position, StoreError> {
        Ok(Position(self.lock().position))
    }

    /// Everything is durable immediately, so listeners are never woken.
    fn subscribe(&self, _: Weak<dyn Wake>) {}

    fn load(&self, run_id: &str) -> Result<Vec<Arc<Record>>, StoreError> {
        let stored = self.lock();
        let run = stored.runs.get(run_id).ok_or_else(|| no_such_run(run_id))?;
        Ok(run.log.records().to_vec())
    }

    fn exists(&self, run_id: &str) -> Result<bool, StoreError> {
        Ok(self.lock().runs.contains_key(run_id))
    }

    fn content(&self, run_id: &str, sha256: &str) -> Result<Option<Arc<[u8]>>, StoreError> {
        let stored = self.lock();
        Ok(stored.runs.get(run_id).and_then(|run| run.contents.get(sha256)).cloned())
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let stored = self.lock();
        let mut found: Vec<&Run> = stored.runs.values().filter(|run| filter.admits(&run.row)).collect();
        found.sort_by(|a, b| b.row.started_at.total_cmp(&a.row.started_at).then(b.number.cmp(&a.number)));
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(found.into_iter().map(|run| run.row.clone()).collect())
    }

    fn tickets(&self, filter: &TicketFilter) -> Result<Vec<TicketRow>, StoreError> {
        let stored = self.lock();
        let runs = stored.runs.values();
        let tickets = runs.flat_map(|run| run.tickets.values().map(move |ticket| (run, ticket)));
        let mut found: Vec<(u64, &TicketRow)> = tickets
            .filter(|(run, ticket)| filter.admits(ticket, &run.row))
            .map(|(run, ticket)| (run.number, ticket))
            .collect();
        found.sort_by(|a, b| {
            b.1.opened_at.total_cmp(&a.1.opened_at).then(b.0.cmp(&a.0)).then(b.1.ticket.cmp(&a.1.ticket))
        });
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(found.into_iter().map(|(_, ticket)| ticket.clone()).collect())
    }

    fn delete(&self, run_ids: &[String]) -> Result<usize, StoreError> {
        let mut stored = self.lock();
        let stored = stored.open()?;
        let doomed = stored.trees(run_ids.iter().cloned());
        let _claims = self.claims.claim_all(doomed.iter().map(String::as_str))?;
        Ok(stored.remove(&doomed))
    }

    fn prune(&self, older_than: Option<f64>, keep: Option<usize>) -> Result<usize, StoreError> {
        let mut stored = self.lock();
        let stored = stored.open()?;
        if older_than.is_none() && keep.is_none() {
            return Ok(0);
        }
        let is_root =
            |run: &&Run| run.row.parent.as_ref().is_none_or(|parent| !stored.runs.contains_key(&parent.run_id));
        let mut roots: Vec<&Run> = stored.runs.values().filter(is_root).collect();
        roots.sort_by(|a, b| b.row.started_at.total_cmp(&a.row.started_at).then(b.number.cmp(&a.number)));
        let ended = |run: &&Run| {
            run.row.finished_at.is_some_and(|finished| older_than.is_none_or(|older_than| finished < older_than))
        };
        let doomed: Vec<String> =
            roots.into_iter().skip(keep.unwrap_or(0)).filter(ended).map(|run| run.row.run_id.clone()).collect();
        let mut removed = 0;
        for root in doomed {
            let tree = stored.trees([root]);
            if let Ok(_claims) = self.claims.claim_all(tree.iter().map(String::as_str)) {
                removed += stored.remove(&tree);
            }
        }
        Ok(removed)
    }

    fn erase(&self, owner: &str) -> Result<Vec<String>, StoreError> {
        let mut stored = self.lock();
        let stored = stored.open()?;
        let roots = stored.runs.values().filter(|run| run.row.owner.as_deref() == Some(owner));
        let roots: Vec<String> = roots.map(|run| run.row.run_id.clone()).collect();
        let doomed = stored.trees(roots);
        let _claims = self.claims.claim_all(doomed.iter().map(String::as_str))?;
        stored.remove(&doomed);
        Ok(doomed.into_iter().collect())
    }

    fn compact(&self, run_id: &str, snapshot: Record) -> Result<(), StoreError> {
        let mut stored = self.lock();
        let stored = stored.open()?;
        let run = stored.runs.get_mut(run_id).ok_or_else(|| no_such_run(run_id))?;
        run.log.compact(Arc::new(snapshot)).map_err(|error| conflict(run_id, error))?;
        stored.position += 1;
        Ok(())
    }

    fn failed(&self) -> Option<String> {
        None
    }

    fn close(&self) -> Result<(), StoreError> {
        self.lock().closed = true;
        Ok(())
    }
}
