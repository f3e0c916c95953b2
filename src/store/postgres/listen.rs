//! What other processes say: that there is something in a queue, for a run, or new in a log that is followed.

use super::address::Address;
use super::shared::{Shared, lock};
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio_postgres::AsyncMessage;

/// How long the server is left alone after it was not there.
const PAUSE: Duration = Duration::from_secs(1);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// There may be something in this queue.
    Queue(String),
    /// This run, which is driven somewhere, was told something.
    Inbox(String),
    /// The log of this run has grown.
    Written(String),
    /// The lease of this run is lost.
    Lost(String),
    /// Anything may have happened: the connection is new.
    Anything,
}

/// Someone who is told.
pub trait Listen: Send + Sync {
    /// Called on a thread of the store, so it must be quick and must not call the store.
    fn notice(&self, notice: &Notice);
}

/// Those who are told.
#[derive(Default)]
pub(super) struct Notices {
    listeners: Mutex<Vec<Weak<dyn Listen>>>,
}

impl Notices {
    pub(super) fn subscribe(&self, listener: Weak<dyn Listen>) {
        lock(&self.listeners).push(listener);
    }

    pub(super) fn tell(&self, notice: &Notice) {
        let listeners: Vec<_> = {
            let mut listeners = lock(&self.listeners);
            listeners.retain(|listener| listener.strong_count() > 0);
            listeners.iter().filter_map(Weak::upgrade).collect()
        };
        for listener in listeners {
            listener.notice(notice);
        }
    }
}

/// The channel on which this process is told of logs that grow.
pub(super) fn channel() -> i32 {
    i32::try_from(std::process::id() % 16).unwrap_or_default()
}

/// Listens until the store is closed. A connection that can't listen, behind a pooler, hears nothing; whoever waits
/// looks now and then all the same.
pub(super) fn run(address: &Address, shared: &Shared) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    while !shared.is_closed() {
        let _ = runtime.block_on(listen(address, shared));
        shared.pause(PAUSE);
    }
}

async fn listen(address: &Address, shared: &Shared) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = address.config().connect(address.tls().clone()).await?;
    let mut messages = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
    let listening = format!("LISTEN callslip_queue; LISTEN callslip_inbox; LISTEN callslip_watch_{}", channel());
    let mut ready = Box::pin(client.batch_execute(&listening));
    let mut is_ready = false;
    while !shared.is_closed() {
        tokio::select! {
            done = &mut ready, if !is_ready => {
                done?;
                is_ready = true;
                shared.notices.tell(&Notice::Anything);
            }
            () = shared.closing.notified() => return Ok(()),
            message = messages.next() => match message {
                None => return Ok(()),
                Some(message) => {
                    if let AsyncMessage::Notification(notification) = message? {
                        tell(shared, notification.channel(), notification.payload());
                    }
                }
            },
        }
    }
    Ok(())
}

fn tell(shared: &Shared, channel: &str, payload: &str) {
    let payload = payload.to_owned();
    let notice = match channel {
        "callslip_queue" => Notice::Queue(payload),
        "callslip_inbox" => Notice::Inbox(payload),
        _ => Notice::Written(payload),
    };
    shared.notices.tell(&notice);
}

/// Starts the thread.
pub(super) fn thread(shared: &Arc<Shared>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("callslip-listen".into()).spawn(move || run(&shared.address, &shared))
}
