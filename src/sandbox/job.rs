//! A job in the background: it sends events, takes answers and can be cancelled.

use super::event::Event;
use crate::signal::{self, Signal, Signalled};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};

/// How much of the output waits for the reader of the events. More is only counted: the result has its beginning and end.
const WAITING_AT_MOST: usize = 1 << 20;

/// A job, as its owner sees it. Dropping it cancels it.
#[derive(Debug)]
pub struct Job {
    shared: Arc<Shared>,
    signalled: Signalled,
    cancel: watch::Sender<bool>,
    answers: mpsc::UnboundedSender<Answer>,
}

/// An answer to a request for input.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which request is meant.
    pub id: u64,
    /// `None` where there is no more.
    pub text: Option<String>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    signal: Signal,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<String>,
    output_waiting: usize,
    told_last: bool,
    taken_last: bool,
}

/// A job, as it sees itself.
#[derive(Debug)]
pub struct EventSender {
    shared: Arc<Shared>,
    /// Becomes true when the job is given up.
    pub cancelled: watch::Receiver<bool>,
    /// What its owner answers.
    pub answers: mpsc::UnboundedReceiver<Answer>,
}

impl Job {
    /// Starts it on the thread of all jobs.
    ///
    /// # Errors
    /// The system has no descriptor or thread left.
    pub fn start<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(EventSender) -> F) -> io::Result<Self> {
        let (signal, signalled) = signal::pair()?;
        let shared = Arc::new(Shared { queue: Mutex::default(), arrived: Condvar::new(), signal });
        let (cancel, cancelled) = watch::channel(false);
        let (answers, answered) = mpsc::unbounded_channel();
        let events = EventSender { shared: shared.clone(), cancelled, answers: answered };
        background()?.spawn(work(events));
        Ok(Self { shared, signalled, cancel, answers })
    }

    /// Readable while there are events to take.
    pub fn descriptor(&self) -> i64 {
        self.signalled.descriptor()
    }

    /// Takes the events that have come, as JSON.
    pub fn news(&self) -> Vec<String> {
        self.signalled.drain();
        let mut queue = self.shared.lock();
        queue.output_waiting = 0;
        queue.taken_last = queue.told_last;
        queue.events.drain(..).collect()
    }

    /// Waits until there are events to take, or the time is over.
    pub fn wait(&self, at_most: Duration) {
        let queue = self.shared.lock();
        if queue.events.is_empty() && !queue.told_last {
            drop(self.shared.arrived.wait_timeout(queue, at_most));
        }
    }

    /// Whether its last event was taken.
    pub fn is_over(&self) -> bool {
        self.shared.lock().taken_last
    }

    /// Answers a request for input. One that is not open is not answered.
    pub fn answer(&self, answer: Answer) {
        // A job that has ended needs none.
        let _ = self.answers.send(answer);
    }

    /// Cancels it. Its last event shows that it has ended.
    pub fn cancel(&self) {
        self.cancel.send_replace(true);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSender {
    /// Sends an event. After the last one, no more are sent.
    pub fn send(&self, event: &Event) {
        if matches!(event, Event::Stdout { text } | Event::Stderr { text } if text.is_empty()) {
            return;
        }
        let Ok(text) = serde_json::to_string(event) else { return };
        let mut queue = self.shared.lock();
        if queue.told_last {
            return;
        }
        if matches!(event, Event::Stdout { .. } | Event::Stderr { .. }) {
            if queue.output_waiting + text.len() > WAITING_AT_MOST {
                return;
            }
            queue.output_waiting += text.len();
        }
        queue.told_last = event.is_last();
        queue.events.push_back(text);
        drop(queue);
        self.shared.arrived.notify_all();
        self.shared.signal.ring();
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        // Whoever waits must not wait for ever, whatever has gone wrong.
        self.send(&Event::Failed {
            error: "runner_lost",
            stage: None,
            errno: None,
            remedy: None,
            message: "the job ended without a result: please report this as a bug of callslip".to_owned(),
        });
    }
}

/// What jobs run on, in one thread.
///
/// # Errors
/// The system has no descriptor left. tokio would panic on some of those that it makes, so that it is tried before.
pub(super) fn runtime() -> io::Result<Runtime> {
    const NEEDED: usize = 6;
    drop((0..NEEDED).map(|_| signal::pair()).collect::<io::Result<Vec<_>>>()?);
    Builder::new_current_thread().enable_all().build()
}

/// The thread of all jobs. A forked child, which has none, gets its own.
fn background() -> io::Result<Handle> {
    static RUNNING: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    if let Some((_, handle)) = running.as_ref().filter(|(process, _)| *process == own) {
        return Ok(handle.clone());
    }
    let runtime = runtime()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("callslip-scripts".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *running = Some((own, handle.clone()));
    Ok(handle)
}
