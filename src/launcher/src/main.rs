//! Starts one script in its box, keeps its limits and ends all of its processes.
//!
//! Single-threaded. Its stdin is the socket to the runner; stdout and stderr are the script's. In `isolated` it is the
//! first process of its namespace: when it ends, the kernel ends all others. Elsewhere it adopts what the script leaves
//! behind, and kills it in rounds. Where the runner is gone, it does the same.

mod bind_paths;
mod channel;
mod control_group;
mod cpu;
mod descriptors;
mod disk;
mod installer;
mod landlock_rules;
mod memory;
mod mounts;
mod privilege;
mod processes;
mod procfs;
#[path = "../../sandbox/runner/removal.rs"]
mod removal;
mod script_process;
mod seccomp;
mod setup_error;
mod supervisor;
mod user_namespace;
#[path = "../../sandbox/wire.rs"]
#[allow(dead_code, reason = "the runner uses the rest of it")]
mod wire;

use channel::Channel;
use control_group::ControlGroup;
use setup_error::SetupError;
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::Report;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).peekable();
    let first = arguments.next_if(|first| first == "--in-user-namespace" || first == "--installer");
    if let Some(first) = first {
        let fault = if first == "--installer" { installer::exec(arguments) } else { user_namespace::exec(arguments) };
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

/// Returns whether the runner received it.
fn tell(channel: &mut Channel, SetupError { stage, cause }: SetupError) -> bool {
    let errno = cause.raw_os_error().unwrap_or(0);
    channel.send(&Report::Fault { stage: stage.into_owned(), errno, message: cause.to_string() }, None).is_ok()
}

fn run(channel: &mut Channel) -> Result<(), SetupError> {
    let (request, mut descriptors) = channel.request()?;
    let group = if request.group { ControlGroup::take(&mut descriptors) } else { None };
    privilege::become_reaper(request.profile)?;
    privilege::wake_at_once(true);
    let folder = mounts::prepare(&request)?;
    channel.send(&Report::Standing, folder.as_ref())?;
    drop(folder);
    privilege::shed(&request)?;
    let payload = script_process::ScriptProcess::start(&request, descriptors.pop(), group.as_ref())?;
    supervisor::Supervisor::new(channel, &request, payload, group)?.until_the_end()
}
