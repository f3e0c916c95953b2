//! The thread that lengthens leases: a thread of its own, which nothing of Python can stop.

use super::lease::Leased;
use super::link::{Failure, Link};
use super::listen::Notice;
use super::shared::Shared;
use crate::store::StoreError;
use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Beats in one lease.
const BEATS: u32 = 3;

/// Beats until the store is closed.
pub(super) fn run(mut link: Link, shared: &Shared) {
    while !shared.is_closed() {
        let lease = shared.lease();
        beat(&mut link, shared, lease);
        shared.pause(lease / BEATS);
    }
    link.close();
}

fn beat(link: &mut Link, shared: &Shared, lease: Duration) {
    let roots = making_progress(shared);
    if roots.is_empty() {
        return;
    }
    let (ids, epochs): (Vec<Arc<str>>, Vec<i64>) =
        roots.iter().filter_map(|lease| Some((lease.run_id_shared(), lease.epoch()?))).unzip();
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    // Whoever leaves a run meanwhile gives up its lease at once, and may claim it again.
    let roots: Vec<Weak<Leased>> = roots.into_iter().map(|lease| Arc::downgrade(&lease)).collect();
    let (asked_at, began) = (shared.now(), wall_clock());
    let sql = "SELECT run_id, has_inbox, extract(epoch FROM clock_timestamp())::double precision AS now \
         FROM callslip.beat($1, $2, $3)";
    let seconds = lease.as_secs_f64();
    // An answer that comes after the next beat is due is of no use.
    let answer =
        link.call_again(lease / BEATS, async |connected| connected.query(sql, &[&ids, &epochs, &seconds]).await);
    let roots: Vec<Arc<Leased>> = roots.iter().filter_map(Weak::upgrade).collect();
    match answer {
        Ok(rows) => {
            shared.confirm(asked_at);
            let held: HashSet<String> = rows.iter().map(|row| row.get("run_id")).collect();
            // Whoever gave one up meanwhile knows.
            for lease in roots.iter().filter(|lease| !held.contains(lease.run_id()) && lease.lost().is_none()) {
                lease.lose(StoreError::TakenOver { run_id: lease.run_id().to_owned() });
                shared.notices.tell(&Notice::Lost(lease.run_id().to_owned()));
            }
            for row in rows.iter().filter(|row| row.get("has_inbox")) {
                shared.notices.tell(&Notice::Inbox(row.get("run_id")));
            }
            if let Some(row) = rows.first() {
                let middle = f64::midpoint(began, wall_clock());
                shared.set_clock_offset(row.get::<_, f64>("now") - middle);
            }
            shared.wake();
        }
        Err(Failure::Unreachable(_) | Failure::Again(_)) => give_up(&roots, shared, lease),
        Err(failure) => {
            let error = shared.error(failure);
            for lease in &roots {
                lease.lose(error.clone());
            }
            shared.wake();
        }
    }
}

/// The leases to lengthen: one whose run makes no progress ends by itself, so that another worker takes the run up. Its
/// claim counts as one in vain then, as that of a worker which has died.
fn making_progress(shared: &Shared) -> Vec<Arc<Leased>> {
    let roots = shared.roots();
    let Some(after) = shared.stuck() else { return roots };
    let (stuck, others): (Vec<_>, Vec<_>) = roots.into_iter().partition(|lease| lease.is_stuck(shared, after));
    for lease in &stuck {
        lease.lose(StoreError::Stuck { run_id: lease.run_id().to_owned(), seconds: after.as_secs() });
        shared.notices.tell(&Notice::Lost(lease.run_id().to_owned()));
    }
    if !stuck.is_empty() {
        shared.wake();
    }
    others
}

/// Without an answer for a whole lease, other workers may have the runs.
fn give_up(roots: &[Arc<Leased>], shared: &Shared, lease: Duration) {
    let whole = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    let mut lost = false;
    for held in roots.iter().filter(|held| held.unconfirmed_for(shared) >= whole) {
        held.lose(StoreError::NoLease { run_id: held.run_id().to_owned(), seconds: lease.as_secs() });
        shared.notices.tell(&Notice::Lost(held.run_id().to_owned()));
        lost = true;
    }
    if lost {
        shared.wake();
    }
}

fn wall_clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
