//! Starts one script in its box, keeps its limits and ends all of its processes.
//!
//! Single-threaded. Its stdin is the socket to the runner; stdout and stderr are the script's. In `isolated` it is the
//! first process of its namespace: when it ends, the kernel ends all others. Elsewhere it adopts what the script leaves
//! behind, and kills it in rounds. Where the runner is gone, it does the same.

mod channel;
mod confine;
mod cpu;
mod disk;
mod enter;
mod fault;
mod filter;
mod installer;
mod memory;
mod payload;
mod privilege;
mod proc;
#[path = "../../sandbox/runner/removal.rs"]
mod removal;
mod room;
mod tree;
mod watch;
mod way;
#[path = "../../sandbox/wire.rs"]
#[allow(dead_code, reason = "the runner uses the rest of it")]
mod wire;

use channel::Channel;
use fault::Fault;
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::Report;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).peekable();
    let first = arguments.next_if(|first| first == "--in-user-namespace" || first == "--installer");
    if let Some(first) = first {
        let fault = if first == "--installer" { installer::exec(arguments) } else { enter::exec(arguments) };
        eprintln!("{fault}");
        return ExitCode::from(125);
    }
    let mut channel = match Channel::of_stdin() {
        Ok(channel) => channel,
        Err(fault) => {
            eprintln!("callslip-launcher is started by callslip: {fault}");
            return ExitCode::from(125);
        }
    };
    // The only argument is the script's folder. Its parent is opened before a way is made that covers it.
    let folder = arguments.next().map(PathBuf::from);
    let parent = folder.as_ref().and_then(|folder| File::open(folder.parent()?).ok());
    let done = run(&mut channel);
    let told = done.as_ref().is_ok_and(|()| !channel.is_closed()) || done.is_err_and(|fault| tell(&mut channel, fault));
    // Where the runner is gone, nobody else removes it.
    if let (false, Some(parent), Some(name)) = (told, parent, folder.as_deref().and_then(Path::file_name)) {
        removal::remove(parent, Path::new(name));
    }
    ExitCode::from(if told { 0 } else { 125 })
}

/// Returns whether anybody was there to be told.
fn tell(channel: &mut Channel, Fault { stage, cause }: Fault) -> bool {
    let errno = cause.raw_os_error().unwrap_or(0);
    channel.send(&Report::Fault { stage: stage.into_owned(), errno, message: cause.to_string() }, None).is_ok()
}

fn run(channel: &mut Channel) -> Result<(), Fault> {
    let (order, stdin) = channel.order()?;
    privilege::become_reaper(order.profile)?;
    privilege::wake_at_once(true);
    let folder = room::furnish(&order)?;
    channel.send(&Report::Standing, folder.as_ref())?;
    drop(folder);
    privilege::shed(&order)?;
    let payload = payload::Payload::start(&order, stdin)?;
    watch::Watch::new(channel, &order, payload)?.until_the_end()
}
