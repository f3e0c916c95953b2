//! Starts one script in its box, keeps its limits and ends all of its processes.
//!
//! Single-threaded. Its stdin is the socket to the runner; stdout and stderr are the script's. In `isolated` it is the
//! first process of its namespace: when it ends, the kernel ends all others. Elsewhere it adopts what the script leaves
//! behind, and kills it in rounds. Where the runner is gone, it does the same.

mod channel;
mod confine;
mod fault;
mod filter;
mod payload;
mod privilege;
#[path = "../../sandbox/runner/removal.rs"]
mod removal;
mod room;
mod tree;
mod watch;
#[path = "../../sandbox/wire.rs"]
#[allow(dead_code, reason = "the runner uses the rest of it")]
mod wire;

use channel::Channel;
use fault::Fault;
use std::process::ExitCode;
use wire::Report;

fn main() -> ExitCode {
    let mut channel = match Channel::of_stdin() {
        Ok(channel) => channel,
        Err(fault) => {
            eprintln!("callslip-launcher is started by callslip: {fault}");
            return ExitCode::from(125);
        }
    };
    match run(&mut channel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fault { stage, cause }) => {
            let errno = cause.raw_os_error().unwrap_or(0);
            // Where the runner is gone, nobody asks why.
            let _ = channel.send(&Report::Fault { stage: stage.into_owned(), errno, message: cause.to_string() }, None);
            ExitCode::from(125)
        }
    }
}

fn run(channel: &mut Channel) -> Result<(), Fault> {
    let (order, stdin) = channel.order()?;
    privilege::become_reaper(order.profile)?;
    let folder = room::furnish(&order)?;
    channel.send(&Report::Standing, folder.as_ref())?;
    drop(folder);
    privilege::shed(&order)?;
    let payload = payload::Payload::start(&order, stdin)?;
    let ended = watch::Watch::new(channel, &order.bounds, payload)?.until_the_end();
    if let Some(folder) = order.folder.filter(|_| channel.is_closed()) {
        removal::remove(&folder);
    }
    ended
}
