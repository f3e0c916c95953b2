//! Every interleaving of the group-commit queue, with two producers and the writer: loom runs the very file that the
//! store uses.

#[expect(dead_code, reason = "what waits with a timeout has no model: loom has no time")]
#[path = "../../../src/store/queue.rs"]
mod queue;

mod sync {
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use loom::sync::Arc;
use loom::thread;
use queue::{Queue, Stopped};
use std::sync::Weak;

/// Every interleaving in which threads are preempted at most three times: bugs of order show with two.
fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// Acknowledges batches of at most so many until the queue ends; says what was written, in order.
fn write(queue: &Queue<u8>, most: usize) -> Vec<u8> {
    let mut written = Vec::new();
    while let Some((batch, position)) = queue.take_batch(most) {
        assert!(!batch.is_empty() && batch.len() <= most);
        written.extend(batch);
        assert_eq!(position, written.len() as u64);
        queue.acknowledge(position);
    }
    written
}

fn produce(queue: &Arc<Queue<u8>>, item: u8) -> thread::JoinHandle<()> {
    let queue = Arc::clone(queue);
    thread::spawn(move || push_and_wait(&queue, item))
}

fn push_and_wait(queue: &Queue<u8>, item: u8) {
    let position = queue.push(item, 1).unwrap();
    queue.wait(position).unwrap();
    assert!(queue.acknowledged().unwrap() >= position);
}

/// Two producers that wait for what they pushed, and a writer.
fn nobody_is_left_waiting(most: usize) {
    model(move || {
        let queue = Arc::new(Queue::new());
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || write(&queue, most))
        };
        let producer = produce(&queue, 1);
        push_and_wait(&queue, 2);
        producer.join().unwrap();
        queue.close();
        let mut written = writer.join().unwrap();
        written.sort_unstable();
        assert_eq!(written, [1, 2]);
    });
}

#[test]
fn every_push_is_acknowledged_in_order_and_wakes_its_waiter() {
    nobody_is_left_waiting(256);
}

#[test]
fn a_batch_of_one_leaves_the_rest_for_the_next() {
    nobody_is_left_waiting(1);
}

#[test]
fn a_failure_reaches_every_waiter() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                queue.take_batch(256).unwrap();
                queue.fail("disk full");
                assert!(queue.take_batch(256).is_none());
            })
        };
        let failed = Err(Stopped::Failed("disk full".into()));
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(1, 1).and_then(|position| queue.wait(position)))
        };
        assert_eq!(queue.push(2, 1).and_then(|position| queue.wait(position)), failed);
        assert_eq!(producer.join().unwrap(), failed);
        writer.join().unwrap();
        assert_eq!(queue.acknowledged(), Err("disk full".into()));
    });
}

#[test]
fn closing_ends_the_writer_after_what_was_pending() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let writer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || write(&queue, 256))
        };
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || match queue.push(2, 1) {
                Ok(position) => queue.wait(position).map(|()| true),
                Err(stopped) => {
                    assert_eq!(stopped, Stopped::Closed);
                    Ok(false)
                }
            })
        };
        queue.push(1, 1).unwrap();
        queue.close();
        let accepted = producer.join().unwrap().unwrap();
        assert_eq!(writer.join().unwrap().len(), if accepted { 2 } else { 1 });
    });
}

/// Hands in work when it is dropped, as the end of a lease does.
struct Ends(Weak<Queue<Self>>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(queue) = self.0.upgrade() {
            let _ = queue.push(Self(Weak::new()), 1);
        }
    }
}

#[test]
fn what_is_dropped_with_a_failure_may_hand_in_work() {
    model(|| {
        let queue = std::sync::Arc::new(Queue::new());
        queue.push(Ends(std::sync::Arc::downgrade(&queue)), 1).unwrap();
        queue.fail("disk full");
        assert!(queue.take_batch(256).is_none());
    });
}
